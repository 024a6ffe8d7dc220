// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_DAG_PROGRAMTEXT_H
#define MGPU_PLANNER_DAG_PROGRAMTEXT_H

// A Program as text that is read back exactly, one fact per line:
//
//   mgpu-program 8
//   program "main" devices 4 spmd 0 resident 0
//   loop 20 at "f:7:1"                      of a program with a rolled loop
//   induction 3 from 0 step 1               buffer 3 holds trip * 1
//   buffer "x" on host argument 0 bytes 4096 type f32 shape 32 32
//   buffer "t" on 2 temporary 0 bytes 4096 type f32 shape 32 32
//   buffer "c" on host constant 0 bytes 4 type f32 shape 1 contents SHA256
//   kernel "k" block 128 1 1 arguments 2 hash "H" at "f:3:1" source SHA256
//   kernel "mm" block 32 8 1 arguments 3 hash "H" at "f:4:1" facts SHA256
//   source
//       SHA256                              on the same line
//   kernel "cu" block 64 1 1 arguments 1 hash "H" at "f:5:1" cuda "JSON" text
//       SHA256 reference SHA256             the same; a file of CUDA C++
//       host "ENTRY" SHA256 cubin "sm_90" SHA256   the same, where it has them
//   argument "x" input type f32 shape 32 32 buffer 0
//   argument "n" specialised type index shape value "3"
//   result "r0" output type f32 shape 32 32 buffer 0
//   node "copy" replay on 2 at "f:9:3" cost 0 4096 4096 0 for 1.5
//   copy 0 0+1024*4:4 1 0+1024*4:4         source, its box, destination, its
//   use 0 r 0+1024*4:4
//   use 1 w 0+1024*4:4
//   node "k" replay on 2 at "" cost 0 0 0 0
//   launch 0 grid 8 1 1 with b1+0 s3f800000
//   use 1 rw 0+256*4:4 by 128 0 0           128 bytes on for each block along x
//   after d0                                d0: data dependence on node 0
//   node "sum" replay on 0 1 at "" cost 0 0 0 0
//   collective all_reduce sum f32 root 0 communicator 0
//   member 0 send 2 0+8*4:4 recv 3 0+8*4:4
//   end
//
// A launch of a part of its grid has `part X Y Z NX NY NZ`, the first block and
// how many, before `with`. `opaque`, work known only by its cost, is in no
// bundle; it ends with `slice`, `splittable N` and `share S` where it is so.
//
// A box is OFFSET{+SIZE*STRIDE}:WIDTH, figures as in support/Types.h. `after`
// letters: d data, a anti, o output, c collective. `cost`: flops, bytes read,
// bytes written, output bytes; then `asks` with a LaunchWork, `matmul` where it
// is one, and `for` with a frozen duration in microseconds. Long parts, which
// are facts (KernelFacts as JSON), sources and constants, lie outside, under
// its SHA-256.

#include "planner/dag/Dag.h"
#include "planner/dag/Program.h"
#include "support/LineText.h"

#include <fmt/format.h>

#include <array>
#include <functional>
#include <map>

namespace mgpu::planner {

/// Bytes by their SHA-256, 64 lower-case hexadecimal digits.
using Blobs = std::map<std::string, std::vector<std::byte>>;

/// Adds the kernels' sources and the constants to `blobs`.
std::string toText(const Program &program, Blobs &blobs);

/// Gives the bytes of a hash; that they have it is its business.
using BlobReader =
    std::function<Result<std::vector<std::byte>>(const std::string &hash)>;

/// Reads what toText() wrote. The text may come from anyone: what is returned
/// passes Program::check(). Errors name the line where they can.
Result<Program> readProgram(std::string_view text, const BlobReader &blobs);

// Reads the tokens that lines of a program's text are made of. Each reads the
// next words of `line`, or says what is wrong with them and where.

// The words of a program's text form, shared by what writes and what reads it.

/// The version that is written, which alone is read.
inline constexpr uint32_t programVersion = 8;
inline constexpr std::array<std::string_view, 6> bufferRoleNames = {
    "temporary", "resident", "argument", "result", "local", "constant"};
inline constexpr std::string_view edgeLetters = "daoc"; // by DepKind

inline std::string_view nameOf(BufferRole role) {
  return bufferRoleNames[size_t(role)];
}
inline char letterOf(DepKind kind) { return edgeLetters[size_t(kind)]; }

/// The T whose name is the next word, T being an enumeration from 0 to `last`.
template <typename T, typename NameOf>
Result<T> readChoice(LineReader &line, std::string_view noun, T last,
                     NameOf nameOf) {
  std::string_view word = line.word();
  for (unsigned k = 0; k <= unsigned(last); ++k)
    if (nameOf(T(k)) == word)
      return T(k);
  return line.bad(
      fmt::format("\"{}\" is not a valid {}", word.substr(0, 40), noun));
}

Result<bool> readFlag(LineReader &line);
Result<ElementType> readElementType(LineReader &line);
Result<CollectiveKind> readCollectiveKind(LineReader &line);
Result<DeviceId> readDevice(LineReader &line);
Result<BufferId> readBufferId(LineReader &line);
Result<Box> readBox(LineReader &line);
Result<Dim3> readDimensions(LineReader &line);
Result<void> readTypeAndShape(LineReader &line, ElementType &type,
                              std::vector<int64_t> &shape);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_DAG_PROGRAMTEXT_H
