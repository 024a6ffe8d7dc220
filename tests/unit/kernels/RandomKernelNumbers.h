// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_UNIT_KERNELS_RANDOMKERNELNUMBERS_H
#define MGPU_TESTS_UNIT_KERNELS_RANDOMKERNELNUMBERS_H

// What operations on numbers give for bits as `kept` keeps them; the caller
// keeps those bits of the result that belong to its kind.
#include "RandomKernel.h"

namespace mgpu::kernels::random {

uint64_t arithOf(const std::string &name, Kind kind, uint64_t x, uint64_t y);
bool holds(const std::string &predicate, uint64_t x, uint64_t y);
uint64_t castOf(const std::string &name, Kind from, uint64_t x);

} // namespace mgpu::kernels::random

#endif // MGPU_TESTS_UNIT_KERNELS_RANDOMKERNELNUMBERS_H
