#include "media/content_digest.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <treble/error.h>

#include <array>
#include <cstdint>

namespace treble {
namespace {

void check(int result) {
  if (result != 1)
    throw Error(ErrorCode::kInternal, "media: libcrypto cannot compute SHA-256; is its FIPS mode set up?");
}

}  // namespace

ContentDigest::ContentDigest() : context_(EVP_MD_CTX_new()) {
  if (!context_ || EVP_DigestInit_ex(context_, EVP_sha256(), nullptr) != 1) {
    EVP_MD_CTX_free(context_);
    check(0);
  }
}

ContentDigest::~ContentDigest() {
  EVP_MD_CTX_free(context_);
}

void ContentDigest::add(std::span<const std::byte> bytes) {
  const std::uint64_t size = bytes.size();
  check(EVP_DigestUpdate(context_, &size, sizeof size));
  check(EVP_DigestUpdate(context_, bytes.data(), bytes.size()));
}

void ContentDigest::add(double number) {
  add(std::as_bytes(std::span(&number, 1)));
}

std::string ContentDigest::hex() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes;
  unsigned int size = 0;
  check(EVP_DigestFinal_ex(context_, bytes.data(), &size));
  return fmt::format("{:02x}", fmt::join(bytes.data(), bytes.data() + size, ""));
}

}  // namespace treble
