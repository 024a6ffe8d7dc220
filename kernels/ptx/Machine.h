// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_PTX_MACHINE_H
#define MGPU_KERNELS_PTX_MACHINE_H

// The state of a launch: clusters of blocks of warps of lanes. Who runs when is
// in Schedule.cpp, who may touch which byte in Memory.cpp and Races.cpp.

#include "kernels/ptx/Launch.h"

#include <bit>
#include <cstring>
#include <fmt/format.h>
#include <random>

namespace mgpu::kernels::ptx {

class Machine;
struct Block;
struct Cluster;

/// A warp's knowledge of the others of its cluster: of each, the time until
/// which it has seen what that one did. The last is of asynchronous copies.
using Clocks = std::vector<uint32_t>;
void join(Clocks &into, const Clocks &from);

/// Who touched a piece of shared memory, and when of its own time.
struct Touched {
  uint32_t time = 0, pc = 0; ///< time 0: nobody
  uint16_t warp = 0;         ///< in the cluster
  uint8_t lane = 0;
};
struct SharedCell {
  Touched write, read, older; ///< `older` is of another reader than `read`
};

/// Awaited: a copy that goes on writes it. Lent: one reads it.
enum class ByteState : uint8_t { Unwritten, Written, Awaited, Lent };
/// Why bytes may not be touched, for messages.
const char *wordOf(ByteState state);

struct SharedMemory {
  std::vector<std::byte> bytes;
  std::vector<ByteState> states;
  std::vector<SharedCell> cells; ///< of Program::granule bytes each
};

/// By block of the grid, counted from 1, and time of the machine.
struct GlobalCell {
  uint32_t writer = 0, writeTime = 0, writePc = 0;
  uint32_t reader = 0, readTime = 0, older = 0, olderTime = 0, readPc = 0;
};

enum class Touch : uint8_t { Read, Write, Atomic };

/// Lanes of a warp that go on at `pc`.
struct Fragment {
  enum class Wait : uint8_t { None, Barrier, Change };
  uint32_t pc = 0, mask = 0;
  Wait wait = Wait::None;
  uint32_t barrier = 0;
  uint64_t stamp = 0; ///< the barrier's generation, or Machine::changes
};

/// One cp.async of one lane.
struct AsyncCopy {
  uint64_t to;
  const std::byte *from;
  uint32_t bytes, read; ///< what is not read is zero
  uint8_t lane;
  uint32_t group;
};
constexpr uint32_t openGroup = ~uint32_t(0);

/// Elements of a reduction in bulk: the first bytes become what they and the
/// second make.
using Combine = void (*)(uint32_t operation, std::byte *to,
                         const std::byte *from, uint32_t bytes);

/// A copy in bulk between the shared memory of a block and what lies outside of
/// it, in pieces.
struct BulkCopy {
  struct Piece {
    std::byte *outside; ///< null: zeros are read, and nothing is written
    uint32_t offset, bytes;
  };
  std::vector<Piece> pieces;
  Block *block = nullptr;    ///< whose shared memory
  Combine combine = nullptr; ///< null: a copy
  uint32_t operation = 0;    ///< of combine
  bool isStore = false;
  uint32_t barrier = 0;    ///< of a load: its mbarrier's offset in the block
  uint32_t group = 0;      ///< of a store
  uint32_t bytes = 0;      ///< of a load, as the mbarrier counts them
  Touched by = {};         ///< the lane that asked for it
  Block *source = nullptr; ///< of a copy between blocks: whose bytes are read
};

/// A product of a warpgroup that goes on, as one of its warps has asked for it.
struct WarpgroupProduct {
  uint32_t pc = 0, group = 0;
  uint64_t a = 0, b = 0;           ///< descriptors
  bool adds = false;               ///< to what D holds
  bool isEarly = false;            ///< D has the result already
  std::vector<uint32_t> registers; ///< of A where it is in registers, by lane
  Clocks seen, visible;
};

/// Lanes that execute an instruction together with others, at the same one or
/// at another of its kind.
struct Party {
  const Instr *instr;
  uint32_t lanes;
};

/// The executing lanes are `mask`; a handler of an instruction may change
/// `next`, or park them.
class Warp {
public:
  Warp(Machine &machine, Block &block, uint32_t index);
  void start();
  /// Runs until it waits, ends, or `budget` instructions are done.
  void run(uint64_t budget);
  bool isDone() const { return active == 0 && others.empty(); }
  bool canRun() const;

  template <typename Cell>
  Cell *cells(uint32_t place) const {
    return reinterpret_cast<Cell *>(file + place);
  }
  uint32_t predicate(uint32_t place) const {
    return *reinterpret_cast<const uint32_t *>(file + place);
  }
  void setPredicate(uint32_t place, uint32_t bits) {
    auto *at = reinterpret_cast<uint32_t *>(file + place);
    *at = (*at & ~mask) | (bits & mask);
  }
  /// The value of a lane's register of 4 or 8 bytes.
  uint64_t value(uint32_t place, uint32_t lane, bool isWide) const {
    return isWide ? cells<uint64_t>(place)[lane] : cells<uint32_t>(place)[lane];
  }

  /// The error's lane, unless it is said, is the first of `mask`.
  void fail(std::string message, int lane = -1,
            ErrorKind kind = ErrorKind::Invalid);
  void park(Fragment::Wait wait, uint32_t pc, uint32_t barrier, uint64_t stamp);
  void branch(uint32_t target, uint32_t lanes);
  void exit(uint32_t lanes);
  /// Whether all lanes of `needed` that have not ended are here; if not, those
  /// here are parked until more come.
  bool gather(uint32_t needed, const Instr &instr);
  /// gather() of the lanes that each lane's register names: who names others
  /// is not waited for. They may come to several instructions that do one
  /// thing with the same modifiers (ISA 9.0, 9.7.9.6): `mask` is all of them,
  /// `parties` those of each. `placeOf` gives the register of an instruction;
  /// without one the lanes that are here are all.
  using PlaceOf = uint32_t (*)(const Warp &, const Instr &);
  bool gatherNamed(PlaceOf placeOf, const Instr &instr);
  /// An operand of all parties, each lane's from its own instruction. `room` is
  /// for 32 cells.
  template <typename Cell>
  const Cell *ofParties(uint32_t Instr::*place, Cell *room) const {
    if (parties.size() == 1)
      return cells<Cell>(parties.front().instr->*place);
    for (const Party &party : parties)
      for (uint32_t lane = 0; lane < lanes; ++lane)
        if (party.lanes >> lane & 1)
          room[lane] = cells<Cell>(party.instr->*place)[lane];
    return room;
  }
  /// Calls `each` with the instruction of each party, while `mask` is its
  /// lanes.
  template <typename Each>
  void forParties(Each each) {
    const uint32_t all = mask;
    for (const Party &party : parties) {
      mask = party.lanes;
      each(*party.instr);
    }
    mask = all;
  }
  uint32_t live() const;
  /// The time of what it does now, which others have not seen.
  uint32_t now() const { return clocks[id]; }
  void release() { ++clocks[id]; }

  /// Checks `bytes` bytes at each address, of the lanes of `mask`, and gives
  /// where they are. `values`, of a write, are `bytes` apart.
  bool reach(const Instr &instr, const uint64_t *addresses, uint32_t bytes,
             Touch touch, std::byte **out, const std::byte *values = nullptr);
  bool reachShared(uint64_t address, uint32_t bytes, Touch touch, uint32_t lane,
                   std::byte **out, const std::byte *value);
  bool reachGlobal(uint64_t address, uint32_t bytes, Touch touch, uint32_t lane,
                   std::byte **out);
  bool reachOther(uint64_t address, uint32_t bytes, Touch touch, uint32_t lane,
                  std::byte **out);
  /// For a strong access, a fence or an arrival on no barrier: whoever did such
  /// before is seen, and sees this.
  void meet();
  /// The block's own addresses in a register of 32 bits, and generic ones.
  void addresses(const Instr &instr, uint64_t *out) const;
  /// addresses() of words that Decoder::addressAt() made.
  void addressesAt(uint32_t word, uint64_t *out) const;
  /// Ends the copies of a lane that are in groups before `groups`; `all`: those
  /// of no group, too.
  void finishCopies(uint32_t lane, uint32_t groups, bool all);
  /// Whether what a copy or product of the asynchronous proxy reads or writes
  /// in shared memory is ordered behind all that was done to it before, as far
  /// as these clocks have seen it, and the proxy may.
  bool reachAsync(Block &owner, uint32_t offset, uint32_t bytes, bool isWrite,
                  uint32_t lane, const Clocks &seen, const Clocks &visible);
  /// Notes what an ended copy or product of a lane has read.
  void noteAsyncRead(Block &owner, uint32_t offset, uint32_t bytes,
                     uint32_t lane);
  uint32_t pcOf(const Instr &instr) const;

  Machine &machine;
  Block &block;
  const uint32_t index; ///< in the block
  uint32_t id = 0;      ///< in the cluster
  std::byte *file = nullptr;
  uint32_t pc = 0, next = 0, active = 0, mask = 0, limit = 0;
  uint32_t exited = 0, present = 0; ///< lanes that ended; that there are
  std::vector<Fragment> others;
  std::vector<Party> parties;
  Clocks clocks, fenced; ///< `fenced`: what asynchronous copies may see
  std::vector<AsyncCopy> copies;
  std::vector<BulkCopy> stores; ///< in bulk, that go on
  std::array<uint32_t, lanes> groups{}, bulkGroups{};
  std::vector<WarpgroupProduct> products;
  uint32_t productGroups = 0, productCount = 0;
  bool hasProductFence = false;
  std::vector<uint8_t> productRegisters; ///< RegisterUse of each
  bool hasAwaited = false;               ///< griddepcontrol.wait
  uint64_t clusterPhase = 0; ///< of the cluster's barrier that it came to

private:
  void choose();
  void joinParked(PlaceOf placeOf, const Instr &instr, uint32_t named);
  uint32_t parkedFor(PlaceOf placeOf, const Instr &instr,
                     const Fragment &parked, uint32_t named) const;
  bool reachTogether(const uint64_t *addresses, uint32_t bytes, Touch touch,
                     std::byte **out);
  bool race(SharedCell &cell, Touch touch, uint32_t lane, uint64_t offset,
            bool isSame);
  void race(const Touched &other, const char *did, const char *does,
            uint64_t offset, uint32_t lane, const char *missing = "a barrier");
  bool raceGlobal(size_t region, uint64_t offset, uint32_t bytes, Touch touch,
                  uint32_t lane);
  std::vector<std::byte> memory;
};

struct Barrier {
  uint64_t generation = 0;
  uint32_t expected = 0; ///< threads; 0 while nobody is there
  uint32_t arrived = 0;
  uint32_t pc = noPlace;
  std::vector<uint32_t> masks; ///< lanes that came, by warp
  Clocks clocks, fenced;
  uint32_t count = 0, threads = 0; ///< of bar.red: true, all
  uint32_t lastCount = 0, lastThreads = 0;
};

struct Block {
  Block(Machine &machine, Cluster &cluster, uint32_t rank);
  bool isDone() const;
  Machine &machine;
  Cluster &cluster;
  const uint32_t rank;
  Dim3 index;
  uint32_t number = 0; ///< in the grid, x fastest, from 1
  SharedMemory shared;
  std::vector<std::byte> local; ///< by thread
  std::vector<std::unique_ptr<Warp>> warps;
  std::array<Barrier, 16> barriers;
  /// The clocks that an arrival on an mbarrier shows to who waits for it, by
  /// address.
  std::map<uint32_t, std::pair<Clocks, Clocks>> arrivals;
  /// Who made each mbarrier that the asynchronous proxy may not yet see.
  std::map<uint32_t, Touched> unpublished;
  uint32_t acquired = 0; ///< when it last met other blocks
  /// The products of the first warp of each warpgroup to come, and where.
  std::array<std::vector<std::array<uint64_t, 3>>, 8> multiplied;
};

struct Cluster {
  Dim3 index;
  std::vector<std::unique_ptr<Block>> blocks;
  Barrier barrier;
  std::vector<BulkCopy> loads; ///< that go on
  uint32_t asyncTime = 1;      ///< of what asynchronous copies have done
  bool isDone() const;
};

class Machine {
public:
  Machine(Instance &instance, const LaunchOptions &options);
  Result<void> check();
  Result<LaunchResult> run();

  const Program &program;
  Instance &instance;
  const LaunchOptions &options;
  std::vector<Region> regions; ///< by address, apart from each other
  std::vector<std::vector<std::unique_ptr<GlobalCell[]>>> pages; ///< of each
  std::optional<Error> error;
  uint64_t instructions = 0;
  uint64_t changes = 1; ///< of what a parked warp may wait for
  uint32_t time = 1;    ///< of meetings between blocks
  size_t lastRegion = 0;
  bool hasManyBlocks = false, hasAwaited = false;
  std::vector<uint32_t> published; ///< by block, when it last met others
  std::mt19937_64 random;
  std::vector<std::byte> parameters;

  /// The region with these bytes in it, or null.
  Region *regionOf(uint64_t address, uint32_t bytes);
  void print(std::string_view text) const;
  std::string placeText(uint32_t pc) const;

private:
  void begin(Cluster &cluster, uint64_t number);
  void runCluster(Cluster &cluster, uint64_t budget);
  void reportDeadlock(Cluster &cluster);
  bool wantsMore = true; ///< another cluster is to begin
  size_t stuckFor = 0;   ///< turns in which nothing was executed
};

} // namespace mgpu::kernels::ptx

#endif // MGPU_KERNELS_PTX_MACHINE_H
