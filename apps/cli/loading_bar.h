#pragma once

#include <treble/engine.h>

namespace treble::cli {

/// A progress bar on stderr, if that is a terminal, while a model is loaded; not drawn if loading takes under a second.
/// The bar goes away with the last copy of what this returns.
LoadProgress loading_bar();

}  // namespace treble::cli
