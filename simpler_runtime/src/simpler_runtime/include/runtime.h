// Entry header that artifacts include besides pto_orchestration_api.h.
#pragma once
#include "pto_orchestration_api.h"
