// The PTO tile instruction set for CPUs: one include for kernels.
#pragma once
#include "language.hpp"

#include "assign.hpp"
#include "compare.hpp"
#include "convert.hpp"
#include "elementwise.hpp"
#include "expand.hpp"
#include "load_store.hpp"
#include "matmul.hpp"
#include "move.hpp"
#include "pad.hpp"
#include "pipe.hpp"
#include "reduce.hpp"
#include "sync.hpp"
#include "unary.hpp"
