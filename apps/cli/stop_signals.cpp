#include "cli/stop_signals.h"

#include <treble/error.h>

#include <initializer_list>

namespace treble::cli {
namespace {

constexpr std::initializer_list<int> kSignals = {SIGINT, SIGTERM, SIGHUP};

}  // namespace

StopSignals::StopSignals() {
  sigset_t held;
  sigemptyset(&held);
  for (const int signal : kSignals) {
    // One that our parent told us to ignore (nohup, a shell's background job) is none of ours.
    struct sigaction action = {};
    if (::sigaction(signal, nullptr, &action) == 0 && action.sa_handler != SIG_IGN) sigaddset(&held, signal);
  }
  ::pthread_sigmask(SIG_BLOCK, &held, &before_);
}

StopSignals::~StopSignals() {
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void StopSignals::throw_if_requested() const {
  sigset_t waiting;
  sigpending(&waiting);
  for (const int signal : kSignals)
    if (sigismember(&waiting, signal) == 1 && sigismember(&before_, signal) == 0)
      throw Error(ErrorCode::kArgument, "stopped by a signal");
}

}  // namespace treble::cli
