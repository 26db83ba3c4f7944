#pragma once

#include <treble/media_limits.h>  // what a caller sets, this folder keeps
