#pragma once

#include <csignal>

namespace treble::cli {

/// For its lifetime, SIGINT, SIGTERM and SIGHUP wait until they are asked for, so that a long piece of work can clean
/// up before the program ends. Threads that begin meanwhile leave them alone too.
class StopSignals {
 public:
  StopSignals();
  /// A signal that came takes effect now: the program ends by it.
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// @throws Error kArgument if one of them has come
  void throw_if_requested() const;

 private:
  sigset_t before_{};
};

}  // namespace treble::cli
