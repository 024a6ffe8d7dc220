// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Communicators and groups. What collectives do is in FakeCollective.cpp.
#include "FakeNccl.h"

#include "FakeLock.h"
#include "FakeNcclCalls.h"
#include "FakeNodes.h"

#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace mgpu::fake {

using device::NcclApi;
using device::NcclComm;
using device::NcclConfig;
using device::NcclId;
using device::NcclResult;

static FakeWorld *theWorld = nullptr;

/// Zero, and taken page by page as it is used.
static void mapWorld(int file) {
  if (theWorld)
    munmap(theWorld, sizeof(FakeWorld));
  void *memory = mmap(
      nullptr, sizeof(FakeWorld), PROT_READ | PROT_WRITE,
      MAP_SHARED | MAP_NORESERVE | (file < 0 ? MAP_ANONYMOUS : 0), file, 0);
  if (memory == MAP_FAILED)
    std::abort();
  theWorld = static_cast<FakeWorld *>(memory);
}

void FakeWorld::create() { mapWorld(-1); }

void FakeWorld::share(const char *path) {
  const int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || ftruncate(file, sizeof(FakeWorld)) != 0)
    std::abort();
  mapWorld(file);
  close(file);
}

FakeWorld &FakeWorld::instance() {
  if (!theWorld)
    create();
  return *theWorld;
}

uint32_t FakeWorld::takeMeeting() {
  for (uint32_t k = 0; k < maxMeetings; ++k) {
    Meeting &meeting = meetings[k];
    if (uint32_t isOver = 1; !meeting.isOver.compare_exchange_strong(isOver, 0))
      continue;
    meeting.arrived = meeting.aborted = meeting.finalized = meeting.left = 0;
    for (size_t i = 0; i < Meeting::maxRanks; ++i)
      meeting.gpus[i] = 0;
    for (size_t i = 0; i < Meeting::maxWindows; ++i) {
      meeting.registered[i] = 0;
      meeting.windowBytes[i] = 0;
    }
    for (auto &row : meeting.mail)
      for (Mail &mail : row)
        mail.posted = mail.taken = 0;
    return k;
  }
  return numMeetings++;
}

static std::unique_ptr<FakeNccl> theNccl;

FakeNccl &FakeNccl::reset() {
  theNccl = std::make_unique<FakeNccl>();
  return *theNccl;
}

FakeNccl &FakeNccl::instance() {
  if (!theNccl)
    reset();
  return *theNccl;
}

NcclResult ncclEnter(const char *name) {
  FakeCuda &fake = FakeCuda::instance();
  fake.called.push_back(name);
  if (++fake.calls == fake.failAt) {
    fake.failedCall = name;
    return FakeNccl::instance().failCode;
  }
  return NcclResult::Success;
}

void ncclViolation(const std::string &text) {
  FakeCuda::instance().violations.push_back(text);
}

FakeComm *commOf(NcclComm handle, const char *call) {
  FakeComm *comm = FakeNccl::instance().comms.find(handle);
  // "Error: corrupted comm object detected", "comm has already been destroyed"
  if (!comm)
    ncclViolation(std::string(call) + " on a communicator that is no more");
  else if (comm->polls > 0 || !comm->isReady)
    ncclViolation(std::string(call) +
                  " before the last call on the communicator was complete");
  return comm;
}

NcclResult begun(FakeComm &comm) {
  comm.polls = FakeNccl::instance().polls;
  return comm.polls > 0 ? NcclResult::InProgress : NcclResult::Success;
}

namespace {

NcclResult getVersion(int *version) {
  *version = FakeNccl::instance().version;
  return NcclResult::Success;
}

const char *errorString(NcclResult) { return "words of NCCL"; }
const char *lastError(NcclComm) { return "the last error"; }

NcclResult getUniqueId(NcclId *id) {
  MGPU_FAKE_NCCL_ENTER("ncclGetUniqueId");
  uint32_t number = FakeWorld::instance().takeMeeting();
  if (number >= FakeWorld::maxMeetings)
    return NcclResult::SystemError;
  std::memset(id, 0x3c, sizeof *id);
  std::memcpy(id, &number, sizeof number);
  (void)nccl;
  return NcclResult::Success;
}

/// ncclConfig_t of 2.28 (nccl.h:77), as libnccl has it for itself. Undefined is
/// INT_MIN, or a null name.
struct Config {
  size_t size = sizeof(Config);
  unsigned int magic = 0, version = 0;
  int blocking = INT_MIN, cgaClusterSize = INT_MIN;
  int minCtas = INT_MIN, maxCtas = INT_MIN;
  const char *netName = nullptr;
  int splitShare = INT_MIN, trafficClass = INT_MIN;
  const char *commName = nullptr;
  int collnetEnable = INT_MIN, ctaPolicy = INT_MIN, shrinkShare = INT_MIN;
  int nvlsCtas = INT_MIN;
  int channelsPerPeer = INT_MIN, nvlinkCentric = INT_MIN; ///< from 2.28 on
};

/// As parseCommConfig() of libnccl's init.cc takes it: it reads as many of the
/// bytes given as this version has, without what came later than the version
/// that is said. Then every value is looked at.
bool isTaken(const void *given, int version) {
  Config said;
  size_t size = 0;
  std::memcpy(&size, given, sizeof size);
  std::memcpy(&said, given,
              std::min(size, version < 22800 ? offsetof(Config, channelsPerPeer)
                                             : sizeof said));
  if (said.magic != 0xcafebeef) // 103
    return false;
  if (said.version < 21400)
    said.blocking = INT_MIN;
  if (said.version < 21700)
    said.cgaClusterSize = said.minCtas = said.maxCtas = INT_MIN;
  if (said.version < 22700)
    said.collnetEnable = said.ctaPolicy = said.shrinkShare = said.nvlsCtas =
        INT_MIN;
  if (said.version < 22800)
    said.channelsPerPeer = said.nvlinkCentric = INT_MIN;
  auto isFlag = [](int value) {
    return value == INT_MIN || value == 0 || value == 1;
  };
  auto isFrom = [](int least, int value) {
    return value == INT_MIN || value >= least;
  };
  return isFlag(said.blocking) && isFrom(0, said.cgaClusterSize) &&
         isFrom(1, said.minCtas) && isFrom(1, said.maxCtas) &&
         said.minCtas <= said.maxCtas && // also where one is undefined
         isFlag(said.splitShare) && isFlag(said.collnetEnable) &&
         isFrom(0, said.ctaPolicy) &&
         said.ctaPolicy <= (version < 22800 ? 1 : 2) &&
         isFlag(said.shrinkShare) && isFrom(1, said.nvlsCtas) &&
         isFrom(1, said.channelsPerPeer) && said.channelsPerPeer <= 64 &&
         isFlag(said.nvlinkCentric);
}

NcclResult initRank(NcclComm *out, int ranks, NcclId id, int rank,
                    NcclConfig *config) {
  MGPU_FAKE_NCCL_ENTER("ncclCommInitRankConfig");
  if (!config || !isTaken(config, nccl.version))
    return NcclResult::InvalidArgument;
  nccl.lastConfig = {};
  std::memcpy(&nccl.lastConfig, config, std::min(config->size, sizeof *config));
  // nccl.h:165: between 0 and ranks - 1. "Invalid rank requested"
  if (rank < 0 || rank >= ranks || ranks > int(Meeting::maxRanks))
    return NcclResult::InvalidArgument;
  // nccl.h:166: the device has to be set before.
  FakeCuda &fake = FakeCuda::instance();
  if (!fake.current())
    return NcclResult::UnhandledCudaError;
  if (fake.isCapturingHere())
    ncclViolation("ncclCommInitRankConfig within a capture");
  uint32_t number = 0;
  std::memcpy(&number, &id, sizeof number);
  if (number >= FakeWorld::instance().numMeetings)
    return NcclResult::InvalidArgument;
  Meeting &meeting = FakeWorld::instance().meetings[number];
  // nccl.h:165: unique within the clique.
  if (meeting.arrived.fetch_or(1u << rank) & (1u << rank))
    return NcclResult::InvalidUsage;
  // libnccl's init.cc: "Duplicate GPU detected".
  constexpr int mostGpus = 64;
  const int gpu = getpid() * mostGpus + fake.current()->gpu;
  for (const std::atomic<int> &other : meeting.gpus)
    if (other == gpu)
      return NcclResult::InvalidUsage;
  meeting.gpus[rank] = gpu;
  FakeComm *comm = nccl.comms.add({&meeting,
                                   rank,
                                   ranks,
                                   fake.current(),
                                   false,
                                   false,
                                   0,
                                   NcclResult::Success,
                                   {},
                                   0,
                                   0,
                                   nullptr,
                                   nullptr});
  *out = reinterpret_cast<NcclComm>(comm);
  // nccl.h:167: synchronizes with the other ranks.
  comm->polls = std::max(nccl.polls, 1);
  return NcclResult::InProgress;
}

NcclResult getAsyncError(NcclComm handle, NcclResult *error) {
  MGPU_FAKE_NCCL_ENTER("ncclCommGetAsyncError");
  FakeComm *comm = nccl.comms.find(handle);
  if (!comm) {
    ncclViolation("ncclCommGetAsyncError on a communicator that is no more");
    return NcclResult::InvalidArgument;
  }
  *error = NcclResult::Success;
  if (nccl.asyncError != NcclResult::Success || comm->meeting->aborted) {
    *error = nccl.asyncError != NcclResult::Success ? nccl.asyncError
                                                    : NcclResult::RemoteError;
    return NcclResult::Success;
  }
  auto all = (1u << comm->ranks) - 1;
  // NCCL's guide, ncclCommWindowRegister: a collective call.
  bool registers =
      comm->unfilled && comm->meeting->registered[comm->numWindows - 1] != all;
  bool waits = (!comm->isReady && comm->meeting->arrived != all) ||
               (comm->isFinalizing && comm->meeting->finalized != all) ||
               registers;
  if (comm->polls > 0 && !waits)
    --comm->polls;
  if (waits || comm->polls > 0) {
    *error = NcclResult::InProgress;
    return NcclResult::Success;
  }
  comm->isReady = true;
  // The guide: a non-blocking communicator may have filled it in only by now.
  device::NcclWindow *into = std::exchange(comm->unfilled, nullptr);
  if (into && nccl.hasNoWindows)
    nccl.windows.remove(comm->filling);
  else if (into)
    *into = reinterpret_cast<device::NcclWindow>(comm->filling);
  return NcclResult::Success;
}

NcclResult finalize(NcclComm handle) {
  FakeNccl &nccl = FakeNccl::instance();
  NcclResult entered = ncclEnter("ncclCommFinalize");
  FakeComm *comm = commOf(handle, "ncclCommFinalize");
  if (!comm || entered != NcclResult::Success)
    return comm ? entered : NcclResult::InvalidArgument;
  if (isHeldByAGraph(comm)) // see destroy()
    ncclViolation("ncclCommFinalize while a graph holds calls of it");
  comm->meeting->finalized.fetch_or(1u << comm->rank);
  comm->isFinalizing = true;
  comm->polls = std::max(nccl.polls, 1);
  return NcclResult::InProgress;
}

NcclResult destroy(NcclComm handle) {
  FakeNccl &nccl = FakeNccl::instance();
  NcclResult entered = ncclEnter("ncclCommDestroy");
  FakeComm *comm = commOf(handle, "ncclCommDestroy");
  if (!comm)
    return NcclResult::InvalidArgument;
  // libnccl's commDestroySync polls until all graphs that refer to it are gone.
  if (isHeldByAGraph(comm))
    ncclViolation(
        "ncclCommDestroy while a graph holds calls of it never returns");
  if (nccl.windows.any([&](const FakeWindow &w) { return w.comm == comm; }))
    ncclViolation("ncclCommDestroy before its windows are deregistered");
  if (!comm->isFinalizing)
    ncclViolation(
        "ncclCommDestroy before ncclCommFinalize waits for the others");
  Meeting &meeting = *comm->meeting;
  const uint32_t all = (1u << comm->ranks) - 1, own = 1u << comm->rank;
  if ((meeting.left.fetch_or(own) | own) == all)
    meeting.isOver = 1;
  nccl.comms.remove(handle);
  return entered;
}

NcclResult abortComm(NcclComm handle) {
  FakeNccl &nccl = FakeNccl::instance();
  FakeComm *comm = nccl.comms.find(handle);
  if (!comm)
    return NcclResult::InvalidArgument;
  comm->meeting->aborted = 1;
  ++nccl.aborts;
  nccl.comms.remove(handle);
  return NcclResult::Success;
}

struct Group {
  int depth = 0;
  /// The error of a call within it: the whole group then fails with it
  /// (libnccl's ncclGroupErrCheck), and nothing of it is started.
  NcclResult error = NcclResult::Success;
  std::map<std::pair<FakeComm *, Stream *>, std::vector<Transfer>> transfers;
};
thread_local Group theGroup;

/// Starts it on the stream, or captures it.
NcclResult enqueue(FakeComm &comm, Stream &stream, Work work) {
  FakeCuda &fake = FakeCuda::instance();
  // A rule of ours and of NCCL's guide (NCCL_GRAPH_MIXING_SUPPORT=0): no call
  // outside of graphs while a replay with such calls runs.
  const char *mixing = std::getenv("NCCL_GRAPH_MIXING_SUPPORT");
  bool mixes = !mixing || std::strcmp(mixing, "0") != 0;
  if (!stream.capturing) {
    if (!mixes && isRunning(comm))
      ncclViolation("a call outside of graphs beside a replay, without mixing");
    comm.connected.insert(work.kind());
    Exec::Step step{{}, {}};
    step.node.graph = nullptr;
    step.node.owner = &comm;
    step.node.start = [&comm, work] { return begin(comm, work); };
    fake.launch({step}, stream);
    return begun(comm);
  }
  // Connections are made by the first call of a kind, with calls that no
  // capture allows (NCCL_RUNTIME_CONNECT).
  if (!comm.connected.count(work.kind()))
    ncclViolation("the first " + work.kind() +
                  " of a communicator was captured");
  if (comm.ranks == 1 && work.isInPlace())
    return begun(comm); // libnccl's onerank.cu: nothing to do
  // NCCL's guide, "Using NCCL with CUDA Graphs": each rank launches the graph
  // of the same capture, which all of them make. Transfers are of two ranks.
  if (work.transfers.empty())
    work.capture = ++comm.captures;
  // libnccl's enqueue.cc: kernels over symmetric windows alone are launched
  // with PROGRAMMATIC_STREAM_SERIALIZATION.
  captureKernel(
      fake, stream, &comm, [&comm, work] { return begin(comm, work); },
      !work.windows.empty());
  // libnccl's strongstream.cc: an event is recorded after every group, and
  // nothing waits for its node.
  if (mixes) {
    auto node = std::make_unique<Node>();
    node->graph = stream.capturing;
    std::memset(&node->params, 0, sizeof node->params);
    node->params.type = CU_GRAPH_NODE_TYPE_EMPTY;
    node->dependencies = stream.frontier;
    stream.capturing->nodes.push_back(std::move(node));
  }
  return begun(comm);
}

NcclResult groupStart() {
  MGPU_FAKE_NCCL_ENTER("ncclGroupStart");
  (void)nccl;
  ++theGroup.depth;
  return NcclResult::Success;
}

NcclResult groupEnd() {
  FakeNccl &nccl = FakeNccl::instance();
  (void)nccl;
  NcclResult entered = ncclEnter("ncclGroupEnd");
  if (theGroup.depth == 0) { // "ncclGroupEnd: not in a group call."
    ncclViolation("ncclGroupEnd without ncclGroupStart");
    return NcclResult::InvalidUsage;
  }
  if (--theGroup.depth > 0)
    return entered;
  auto transfers = std::move(theGroup.transfers);
  theGroup.transfers.clear();
  NcclResult error = std::exchange(theGroup.error, NcclResult::Success);
  if (entered == NcclResult::Success)
    entered = error;
  if (entered != NcclResult::Success)
    return entered;
  bool isCaptured = false, isNot = false;
  for (const auto &[key, each] : transfers)
    (key.second->capturing ? isCaptured : isNot) = true;
  // "Either none or all communicators in a ncclGroup() can be CUDA graph
  // captured."
  if (isCaptured && isNot)
    return NcclResult::InvalidUsage;
  NcclResult result = NcclResult::Success;
  for (auto &[key, each] : transfers) {
    Work work;
    work.transfers = std::move(each);
    result = enqueue(*key.first, *key.second, std::move(work));
  }
  return result;
}

/// The checks of all calls that communicate; null: `code` says why not.
FakeComm *checked(const char *name, const void *send, size_t sendBytes,
                  void *recv, size_t recvBytes, NcclComm handle,
                  CUstream stream, NcclResult &code) {
  code = ncclEnter(name);
  if (code != NcclResult::Success)
    return nullptr;
  FakeCuda &fake = FakeCuda::instance();
  FakeComm *comm = commOf(handle, name);
  code = NcclResult::InvalidArgument;
  Stream *on = fake.streams.find(stream);
  if (!comm || !on)
    return nullptr;
  if (on->context != comm->context || fake.current() != comm->context)
    ncclViolation(std::string(name) + " with another GPU current");
  if (comm->isFinalizing)
    ncclViolation(std::string(name) + " after ncclCommFinalize");
  for (auto [address, bytes] :
       {std::pair{send, sendBytes},
        std::pair{static_cast<const void *>(recv), recvBytes}})
    if (bytes > 0 && !fake.isDeviceRange(uint64_t(uintptr_t(address)), bytes,
                                         comm->context)) {
      ncclViolation(std::string(name) + " on what is not memory of the GPU");
      return nullptr;
    }
  code = NcclResult::Success;
  return comm;
}

NcclResult collective(Work work, const void *send, size_t sendBytes, void *recv,
                      size_t recvBytes, NcclComm handle, CUstream stream) {
  NcclResult code;
  work.send = static_cast<const std::byte *>(send);
  work.recv = static_cast<std::byte *>(recv);
  FakeComm *comm = checked(work.name, send, sendBytes, recv, recvBytes, handle,
                           stream, code);
  if (!comm)
    return code;
  work.windows = windowsOf(*comm, work, sendBytes, recvBytes);
  if (!work.isOverlapLegal(comm->rank, sendBytes, recvBytes))
    ncclViolation(std::string(work.name) + " with ends that overlap");
  // Where a rank has its buffer elsewhere in a window, others read that.
  if (FakeNccl &nccl = FakeNccl::instance();
      !work.windows.empty() && FakeCuda::instance().isWrong(*comm->context) &&
      ++nccl.windowWorks == nccl.movesWindow)
    work.send += bytesOf(work.type);
  if (theGroup.depth > 0)
    ncclViolation("collectives in groups are not what is tested here");
  return enqueue(*comm, *FakeCuda::instance().streams.find(stream),
                 std::move(work));
}

size_t ranksOf(NcclComm handle) {
  FakeComm *comm = FakeNccl::instance().comms.find(handle);
  return comm ? size_t(comm->ranks) : 0;
}

NcclResult allReduce(const void *send, void *recv, size_t count,
                     device::NcclType type, device::NcclReduction reduction,
                     NcclComm comm, CUstream stream) {
  size_t bytes = count * bytesOf(type);
  return collective({"ncclAllReduce", type, reduction, count}, send, bytes,
                    recv, bytes, comm, stream);
}

NcclResult reduceScatter(const void *send, void *recv, size_t count,
                         device::NcclType type, device::NcclReduction reduction,
                         NcclComm comm, CUstream stream) {
  size_t bytes = count * bytesOf(type);
  return collective({"ncclReduceScatter", type, reduction, count}, send,
                    bytes * ranksOf(comm), recv, bytes, comm, stream);
}

NcclResult allGather(const void *send, void *recv, size_t count,
                     device::NcclType type, NcclComm comm, CUstream stream) {
  size_t bytes = count * bytesOf(type);
  return collective({"ncclAllGather", type, {}, count}, send, bytes, recv,
                    bytes * ranksOf(comm), comm, stream);
}

NcclResult broadcast(const void *send, void *recv, size_t count,
                     device::NcclType type, int root, NcclComm comm,
                     CUstream stream) {
  size_t bytes = count * bytesOf(type);
  // "invalid root %d (root should be in the 0..%d range)"
  if (root < 0 || size_t(root) >= ranksOf(comm))
    return NcclResult::InvalidArgument;
  return collective({"ncclBroadcast", type, {}, count, root}, send, bytes, recv,
                    bytes, comm, stream);
}

NcclResult transfer(const char *name, bool isSend, void *data, size_t count,
                    device::NcclType type, int peer, NcclComm handle,
                    CUstream stream) {
  NcclResult code;
  size_t bytes = count * bytesOf(type);
  FakeComm *comm = checked(name, isSend ? data : nullptr, isSend ? bytes : 0,
                           isSend ? nullptr : data, isSend ? 0 : bytes, handle,
                           stream, code);
  if (comm && (peer < 0 || peer >= comm->ranks))
    code = NcclResult::InvalidArgument;
  if (code != NcclResult::Success)
    return theGroup.error = code;
  if (theGroup.depth == 0)
    ncclViolation("a send or recv alone: grouped is what is tested here");
  theGroup.transfers[{comm, FakeCuda::instance().streams.find(stream)}]
      .push_back({isSend, peer, static_cast<std::byte *>(data), bytes,
                  inWindow(*comm, data, bytes).has_value()});
  return NcclResult::Success;
}

NcclResult send(const void *data, size_t count, device::NcclType type, int peer,
                NcclComm comm, CUstream stream) {
  return transfer("ncclSend", true, const_cast<void *>(data), count, type, peer,
                  comm, stream);
}

NcclResult recv(void *data, size_t count, device::NcclType type, int peer,
                NcclComm comm, CUstream stream) {
  return transfer("ncclRecv", false, data, count, type, peer, comm, stream);
}

} // namespace

std::shared_ptr<const NcclApi> FakeNccl::api() {
  auto api = std::make_shared<NcclApi>();
  api->GetVersion = getVersion;
  api->GetUniqueId = getUniqueId;
  api->CommInitRankConfig = initRank;
  api->CommGetAsyncError = getAsyncError;
  api->CommFinalize = finalize;
  api->CommDestroy = destroy;
  api->CommAbort = abortComm;
  api->GroupStart = groupStart;
  api->GroupEnd = groupEnd;
  api->AllReduce = allReduce;
  api->ReduceScatter = reduceScatter;
  api->AllGather = allGather;
  api->Broadcast = broadcast;
  api->Send = send;
  api->Recv = recv;
  addWindowCalls(*api);
  MGPU_NCCL_FUNCTIONS(MGPU_FAKE_LOCK_ENTRY)
  MGPU_NCCL_OPTIONAL(MGPU_FAKE_LOCK_ENTRY)
  api->GetErrorString = errorString;
  api->GetLastError = lastError;
  api->version = instance().version;
  return api;
}

} // namespace mgpu::fake
