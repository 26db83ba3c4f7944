#include <treble/version.h>

namespace treble {

const char* version() {
  return TREBLE_VERSION;
}

}  // namespace treble
