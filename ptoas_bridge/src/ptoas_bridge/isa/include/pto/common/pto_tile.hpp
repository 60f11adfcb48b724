// Name under which hand-written kernels include the instruction set.
#pragma once
#include "../pto-inst.hpp"
