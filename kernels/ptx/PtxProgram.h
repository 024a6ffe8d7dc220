// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_PTX_PTXPROGRAM_H
#define MGPU_KERNELS_PTX_PTXPROGRAM_H

// One entry of a module as records that a warp executes one after the other.
// An operand is a place in the warp's file of registers, where each register
// has a cell for each of 32 lanes; a constant and a special register such as
// %tid.x are registers that somebody filled before.

#include "kernels/ptx/Syntax.h"

#include <array>

namespace mgpu::kernels::ptx {

class Warp;
struct Instr;
using Run = void (*)(Warp &, const Instr &);

constexpr uint32_t lanes = 32;
constexpr uint32_t allLanes = ~uint32_t(0);
constexpr uint32_t noPlace = ~uint32_t(0);

/// In Instr::flags of what has an address: its register has 64 bits.
constexpr uint32_t wideAddress = 1u << 31;

/// The instruction decides what `d` to `more` mean; they are places unless it
/// says otherwise.
struct Instr {
  Run run = nullptr;
  uint32_t guard = noPlace; ///< a predicate
  bool isGuardNegated = false;
  Space space = Space::Generic;
  uint8_t bytes = 0; ///< of an element in memory
  uint8_t count = 1; ///< elements of a vector
  uint32_t d = 0, a = 0, b = 0, c = 0;
  uint32_t more = 0; ///< the first of its words in Program::words
  uint32_t flags = 0;
  int64_t offset = 0;
};

/// Values that a warp, a block or a launch has, and where they are put.
enum class Special : uint8_t {
  TidX,
  TidY,
  TidZ,
  NtidX,
  NtidY,
  NtidZ,
  CtaidX,
  CtaidY,
  CtaidZ,
  NctaidX,
  NctaidY,
  NctaidZ,
  LaneId,
  WarpId,
  NwarpId,
  SmId,
  NsmId,
  GridId,
  MaskEq,
  MaskLt,
  MaskLe,
  MaskGt,
  MaskGe,
  ClusteridX,
  ClusteridY,
  ClusteridZ,
  NclusteridX,
  NclusteridY,
  NclusteridZ,
  ClusterCtaidX,
  ClusterCtaidY,
  ClusterCtaidZ,
  ClusterNctaidX,
  ClusterNctaidY,
  ClusterNctaidZ,
  ClusterCtarank,
  ClusterNctarank,
  ExplicitCluster,
  DynamicShared,
  TotalShared,
  Clock,
  Clock64,
  GlobalTimer,
  Zero
};

struct Parameter {
  uint32_t offset = 0, bytes = 0;
  std::string name;
};

/// Where addresses of what is no buffer begin: above all that a process has.
/// The low 32 bits are an offset.
constexpr uint64_t sharedWindow = uint64_t(1) << 56;
constexpr uint64_t localWindow = uint64_t(2) << 56;
constexpr uint64_t paramWindow = uint64_t(3) << 56;
constexpr uint64_t variableWindow = uint64_t(4) << 56; ///< .global and .const
constexpr uint64_t functionWindow = uint64_t(5) << 56;
constexpr uint64_t windowMask = uint64_t(0xff) << 56;
/// An address of shared memory of another block of the cluster has the block's
/// rank and 1 here.
constexpr uint32_t rankShift = 24;

/// An instruction that touches registers of products of warpgroups, which may
/// be in use: by their numbers.
struct Watched {
  Run run = nullptr;
  std::vector<uint32_t> touched, written;
};

struct Program {
  std::shared_ptr<const Module> module; ///< its names are meant below
  std::string entry;
  std::vector<Instr> code;
  std::vector<Place> places; ///< of each instruction
  std::vector<uint32_t> words;
  std::vector<std::byte> file; ///< a warp's registers at its start
  std::vector<std::pair<Special, uint32_t>> specials;
  std::vector<Parameter> parameters;
  uint32_t parameterBytes = 0;
  uint32_t sharedBytes = 0;   ///< static; what is dynamic lies behind it
  uint32_t sharedPadding = 0; ///< of them: before what is dynamic
  uint32_t localBytes = 0;    ///< of a thread
  uint32_t variableBytes = 0, granule = 4;
  std::vector<std::byte> variables; ///< .global and .const, at the start
  uint32_t maxThreads = 0;
  bool hasWait = false;                        ///< a griddepcontrol.wait
  std::array<uint32_t, 3> needed{}, cluster{}; ///< 0 where it is not said
  std::vector<uint32_t> functions; ///< first instruction of those called
  std::map<uint32_t, uint32_t> productRegisters; ///< numbers, by their places
  std::map<uint32_t, Watched> watched;           ///< by instruction
};

/// Invalid, with the line, where an instruction's operands do not fit it;
/// Unsupported, with the instruction and its line, for one that is not
/// executed. An empty `entry` stands for the only one.
Result<Program> decode(std::shared_ptr<const Module> module,
                       std::string_view entry);

/// An instruction that is executed: its name, the section of the PTX manual
/// (ISA 9.0) that says what it means, and how it is read.
class Decoder;
struct Operation {
  std::string_view name;
  std::string_view section;
  void (*decode)(Decoder &);
};
/// All of them, by name.
const std::map<std::string_view, Operation> &operations();

} // namespace mgpu::kernels::ptx

#endif // MGPU_KERNELS_PTX_PTXPROGRAM_H
