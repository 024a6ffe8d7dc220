// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_GPU_SPANS_H
#define MGPU_TESTS_GPU_SPANS_H

#include <span>
#include <string>

namespace mgpu::gpu {

/// What replays of programs take on GPU 0, measured in turn:
///   gpu-replays spans ROUNDS SECONDS [bare] [nodes] [NAME=VALUE ...]
///                     [NAME>FILE ...] -- [tuned:]FILE ...
/// A JSON line for each FILE: the GPU's time of a replay (`span_us`) and the
/// caller's (`call_us`) as [median, p25, p75], by its first SECONDS, of three
/// rounds at least. `bare`: also cublasLtMatmul of the program's first product
/// in a stream, with the algorithm that the plan has. `nodes`: the time of each
/// node. NAME>FILE writes the bytes of an array of the first program, and of
/// the K-th of the others to FILE.K; where one of these differs from the
/// first's, that is said.
/// Returns the exit code: 1 where a program failed, 3 without a GPU.
int measureSpans(std::span<const std::string> words);

} // namespace mgpu::gpu

#endif // MGPU_TESTS_GPU_SPANS_H
