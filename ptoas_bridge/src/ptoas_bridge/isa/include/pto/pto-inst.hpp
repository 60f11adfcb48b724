// The PTO tile instruction set for CPUs: one include for kernels.
#pragma once
#include "language.hpp"

#include "assign.hpp"
#include "elementwise.hpp"
#include "expand.hpp"
#include "load_store.hpp"
#include "matmul.hpp"
#include "move.hpp"
#include "reduce.hpp"
#include "sync.hpp"
#include "unary.hpp"
