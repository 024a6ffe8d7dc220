// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What ranks do with each other's data: every rank writes to those that need
// it, and computes once it has all letters.
#include "FakeCollective.h"

#include "device/host/HostCollective.h"

#include <cstring>

namespace mgpu::fake {

using device::NcclReduction;
using device::NcclType;

size_t bytesOf(NcclType type) {
  switch (type) {
  case NcclType::Int32:
  case NcclType::Float32:
    return 4;
  case NcclType::Int64:
  case NcclType::Float64:
    return 8;
  case NcclType::Float16:
  case NcclType::Bfloat16:
    return 2;
  default:
    return 1;
  }
}

static device::ReduceFunction reduceOf(NcclType type, NcclReduction reduction) {
  ElementType element = ElementType::I8;
  switch (type) {
  case NcclType::Int8:
    break;
  case NcclType::Int32:
    element = ElementType::I32;
    break;
  case NcclType::Int64:
    element = ElementType::I64;
    break;
  case NcclType::Float16:
    element = ElementType::F16;
    break;
  case NcclType::Bfloat16:
    element = ElementType::BF16;
    break;
  case NcclType::Float32:
    element = ElementType::F32;
    break;
  case NcclType::Float64:
    element = ElementType::F64;
    break;
  case NcclType::Float8E4M3:
    element = ElementType::F8E4M3FN;
    break;
  case NcclType::Float8E5M2:
    element = ElementType::F8E5M2;
    break;
  }
  constexpr ReductionKind kinds[] = {ReductionKind::Sum, ReductionKind::Prod,
                                     ReductionKind::Max, ReductionKind::Min};
  return device::reduceFunction(element, kinds[size_t(reduction)]);
}

std::string Work::kind() const {
  if (transfers.empty())
    return name;
  std::string text = "group of";
  for (const Transfer &each : transfers)
    text += (each.isSend ? " send " : " recv ") + std::to_string(each.peer);
  return text;
}

std::string Work::signature() const {
  if (!transfers.empty())
    return name;
  return std::string(name) + " of " + std::to_string(count) + " of type " +
         std::to_string(int(type)) + ", reduction " +
         std::to_string(int(reduction)) + ", root " + std::to_string(root) +
         (windows.empty() ? "" : ", " + windows) +
         (capture ? ", captured as number " + std::to_string(capture) : "");
}

bool Work::isOverlapLegal(int rank, size_t sendBytes, size_t recvBytes) const {
  auto from = uintptr_t(send), to = uintptr_t(recv);
  if (to >= from + sendBytes || from >= to + recvBytes)
    return true;
  if (sendBytes == recvBytes)
    return from == to;
  return sendBytes < recvBytes ? from == to + size_t(rank) * sendBytes
                               : to == from + size_t(rank) * recvBytes;
}

namespace {

class Exchange final : public Operation {
public:
  Exchange(FakeComm &comm, const Work &work) : comm(comm), work(work) {
    const size_t slice = work.count * bytesOf(work.type);
    const auto n = size_t(comm.ranks);
    auto is = [&](const char *name) { return !std::strcmp(work.name, name); };
    for (const Transfer &each : work.transfers)
      add(each.isSend, each.peer, each.data, each.bytes, each.isInWindow);
    for (size_t peer = 0; work.transfers.empty() && peer < n; ++peer) {
      bool scatters = is("ncclReduceScatter"), roots = is("ncclBroadcast");
      if (!roots || comm.rank == work.root)
        add(true, int(peer), work.send + (scatters ? peer * slice : 0), slice);
      if (!roots || int(peer) == work.root)
        add(false, int(peer), nullptr, slice);
    }
  }

  bool step() override {
    if (comm.meeting->aborted)
      return false; // its kernel ended, its data is nothing
    bool isAll = true;
    for (Letter &letter : letters)
      if (!letter.done)
        isAll &= letter.done = letter.isSend ? post(letter) : take(letter);
    if (isAll)
      finish();
    return isAll;
  }

  double ms() const override {
    const auto &given = FakeNccl::instance().workMs;
    return given ? given(work, comm.ranks) : Operation::ms();
  }

private:
  struct Letter {
    bool isSend;
    int peer;
    const std::byte *data;
    std::vector<std::byte> bytes;
    bool isInWindow = false;
    bool done = false;
  };

  void add(bool isSend, int peer, const std::byte *data, size_t bytes,
           bool isInWindow = false) {
    letters.push_back(
        {isSend, peer, data, std::vector<std::byte>(bytes), isInWindow, false});
  }

  /// A transfer's signature says also whether its end is in a window: that of
  /// the other rank must be then (NCCL's guide, "User Buffer Registration").
  std::string signatureOf(const Letter &letter) const {
    return (work.signature() + (letter.isInWindow ? " in a window" : ""))
        .substr(0, sizeof Mail::signature - 1);
  }

  bool post(Letter &letter) {
    Mail &mail = comm.meeting->mail[comm.rank][letter.peer];
    if (mail.posted != mail.taken || isAfterAnother(letter))
      return false;
    if (letter.bytes.size() > Mail::capacity) {
      FakeCuda::instance().violations.push_back("too much for the double");
      return true;
    }
    mail.bytes = letter.bytes.size();
    std::strncpy(mail.signature, signatureOf(letter).c_str(),
                 sizeof mail.signature - 1);
    std::memcpy(mail.data, letter.data, letter.bytes.size());
    ++mail.posted;
    return true;
  }

  bool take(Letter &letter) {
    Mail &mail = comm.meeting->mail[letter.peer][comm.rank];
    if (mail.posted == mail.taken || isAfterAnother(letter))
      return false;
    // nccl.h:500: the same type and count; for collectives all ranks must make
    // the same calls in the same order.
    if (mail.bytes != letter.bytes.size() ||
        mail.signature != signatureOf(letter))
      FakeCuda::instance().violations.push_back(
          std::string("ranks differ: ") + mail.signature + " of " +
          std::to_string(mail.bytes) + " bytes meets " + signatureOf(letter) +
          " of " + std::to_string(letter.bytes.size()));
    std::memcpy(letter.bytes.data(), mail.data,
                std::min<size_t>(mail.bytes, letter.bytes.size()));
    ++mail.taken;
    return true;
  }

  /// Letters to or from the same rank go in order.
  bool isAfterAnother(const Letter &letter) const {
    for (const Letter &other : letters) {
      if (&other == &letter)
        return false;
      if (other.isSend == letter.isSend && other.peer == letter.peer &&
          !other.done)
        return true;
    }
    return false;
  }

  void finish() {
    const size_t slice = work.count * bytesOf(work.type);
    if (!work.transfers.empty()) {
      for (size_t k = 0; k < letters.size(); ++k)
        if (!letters[k].isSend)
          std::memcpy(work.transfers[k].data, letters[k].bytes.data(),
                      letters[k].bytes.size());
      return;
    }
    bool reduces = !std::strcmp(work.name, "ncclAllReduce") ||
                   !std::strcmp(work.name, "ncclReduceScatter");
    bool gathers = !std::strcmp(work.name, "ncclAllGather");
    // By rank, which is the host target's order.
    std::vector<std::byte> sum;
    for (const Letter &letter : letters) {
      if (letter.isSend)
        continue;
      if (!reduces)
        std::memcpy(work.recv + (gathers ? size_t(letter.peer) * slice : 0),
                    letter.bytes.data(), slice);
      else if (sum.empty())
        sum = letter.bytes;
      else
        reduceOf(work.type, work.reduction)(sum.data(), letter.bytes.data(),
                                            work.count);
    }
    std::copy(sum.begin(), sum.end(), work.recv);
  }

  FakeComm &comm;
  Work work;
  std::vector<Letter> letters;
};

} // namespace

/// The GPUs that are ranks of both.
static size_t sharedRanks(const FakeComm &a, const FakeComm &b) {
  size_t shared = 0;
  for (int k = 0; k < a.ranks; ++k)
    for (int j = 0; j < b.ranks; ++j)
      shared += a.meeting->gpus[k] == b.meeting->gpus[j];
  return shared;
}

static bool runsBesideAnother(const FakeComm &comm) {
  return FakeCuda::instance().streams.any([&](const Stream &stream) {
    return stream.context == comm.context &&
           std::any_of(
               stream.runs.begin(), stream.runs.end(), [&](const auto &run) {
                 return std::any_of(
                     run->waiting.begin(), run->waiting.end(),
                     [&](const auto &each) {
                       // None: the work is cuBLASLt's, or waits to begin.
                       const auto *other =
                           FakeNccl::instance().comms.find(const_cast<void *>(
                               run->steps[each.first].node.owner));
                       return each.second && other && other != &comm &&
                              sharedRanks(comm, *other) >= 2;
                     });
               });
  });
}

std::unique_ptr<Operation> begin(FakeComm &comm, const Work &work) {
  // NCCL's guide, "Using multiple NCCL communicators concurrently": two ranks
  // that start the calls of two communicators in two orders may hang.
  if (runsBesideAnother(comm))
    FakeCuda::instance().violations.push_back(
        "two communicators that share two ranks run at once");
  return std::make_unique<Exchange>(comm, work);
}

bool isHeldByAGraph(const FakeComm *comm) {
  FakeCuda &fake = FakeCuda::instance();
  auto isOf = [&](const Node &node) { return node.owner == comm; };
  return fake.graphs.any([&](const Graph &graph) {
    return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                       [&](const auto &node) { return isOf(*node); });
  }) || fake.execs.any([&](const Exec &exec) {
    return std::any_of(exec.steps.begin(), exec.steps.end(),
                       [&](const Exec::Step &step) { return isOf(step.node); });
  });
}

bool isRunning(const FakeComm &comm) {
  return FakeCuda::instance().streams.any([&](const Stream &stream) {
    return std::any_of(
        stream.runs.begin(), stream.runs.end(), [&](const auto &run) {
          return std::any_of(
              run->steps.begin(), run->steps.end(),
              [&](const Exec::Step &step) { return step.node.owner == &comm; });
        });
  });
}

} // namespace mgpu::fake
