#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct evp_md_ctx_st;

namespace treble {

/// SHA-256 of a sequence of texts, numbers and byte strings; where one ends and the next begins counts too.
class ContentDigest {
 public:
  ContentDigest();
  ~ContentDigest();
  ContentDigest(const ContentDigest&) = delete;
  ContentDigest& operator=(const ContentDigest&) = delete;

  void add(std::span<const std::byte> bytes);
  void add(std::string_view text) { add(std::as_bytes(std::span(text))); }
  void add(double number);

  /// 64 hexadecimal digits. Ends the sequence.
  std::string hex();

 private:
  evp_md_ctx_st* context_;
};

}  // namespace treble
