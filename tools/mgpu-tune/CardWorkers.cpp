// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/mgpu-tune/CardWorkers.h"

#include "capture/graph/Cards.h"
#include "support/Clock.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <fmt/format.h>

namespace mgpu::tune {

using tuner::Bytes;

namespace {

/// The first byte of a request.
enum class Step : uint8_t { Open, Build, Load, Replay, Fetch, Timed, Close };

template <typename T>
void append(Bytes &to, const T &value) {
  static_assert(std::is_trivially_copyable_v<T>);
  size_t at = to.size();
  to.resize(at + sizeof value);
  std::memcpy(to.data() + at, &value, sizeof value);
}

void append(Bytes &to, std::string_view text) {
  append(to, uint64_t(text.size()));
  size_t at = to.size();
  to.resize(at + text.size());
  std::copy_n(reinterpret_cast<const std::byte *>(text.data()), text.size(),
              to.begin() + ptrdiff_t(at));
}

/// Reads what append() wrote. A rank that died in the middle is found before.
class Reader {
public:
  explicit Reader(std::span<const std::byte> bytes) : bytes(bytes) {}
  template <typename T>
  T take() {
    T value{};
    if (bytes.size() >= sizeof value) {
      std::memcpy(&value, bytes.data(), sizeof value);
      bytes = bytes.subspan(sizeof value);
    }
    return value;
  }
  std::string text() {
    auto size = std::min<uint64_t>(take<uint64_t>(), bytes.size());
    std::string out(reinterpret_cast<const char *>(bytes.data()), size);
    bytes = bytes.subspan(size);
    return out;
  }
  bool isEmpty() const { return bytes.empty(); }

private:
  std::span<const std::byte> bytes;
};

Bytes request(Step step) {
  Bytes out;
  append(out, step);
  return out;
}

SharedControl &controlOf(const SharedMemory &memory) {
  return *reinterpret_cast<SharedControl *>(memory.bytes().data());
}

constexpr uint64_t controlBytes = (sizeof(SharedControl) + 4095) / 4096 * 4096;

} // namespace

/// What the process of a rank has.
class CardWorkers::Rank {
public:
  Rank(uint32_t rank, const planner::Dag &dag, const planner::Plan &plan,
       const std::vector<std::vector<std::byte>> &kernels,
       std::vector<std::vector<DeviceId>> members, Open open, Options options,
       std::span<std::byte> memory)
      : rank(rank), dag(dag), plan(plan), kernels(kernels),
        members(std::move(members)), openRank(std::move(open)),
        options(std::move(options)),
        control(*reinterpret_cast<SharedControl *>(memory.data())),
        hostMemory(memory.subspan(controlBytes)) {}

  /// The answer: 0 and what was asked for, or 1 + an ErrorKind and a text.
  Bytes answer(std::span<const std::byte> asked) {
    Bytes out;
    append(out, uint8_t(0));
    Result<void> done = run(Reader(asked), out);
    if (done)
      return out;
    out.clear();
    append(out, uint8_t(1 + uint8_t(done.error().kind)));
    append(out, std::string_view(done.error().message));
    return out;
  }

private:
  Result<void> run(Reader asked, Bytes &out) {
    switch (asked.take<Step>()) {
    case Step::Open:
      return open(out);
    case Step::Build:
      return build(asked);
    case Step::Load:
      return replayer->load();
    case Step::Fetch:
      return replayer->fetch();
    case Step::Replay:
      for (auto left = asked.take<uint64_t>(); left > 0; --left) {
        Clock::time_point start = Clock::now();
        MGPU_TRY(replayer->replay());
        append(out, microsecondsSince(start));
      }
      return {};
    case Step::Timed: {
      MGPU_TRY_ASSIGN(capture::TimedReplay timed, replayer->replayTimed());
      append(out, uint64_t(timed.nodes.size()));
      for (const capture::NodeSpan &span : timed.nodes)
        append(out, span);
      for (const device::HostSpan &span : timed.host)
        append(out, span);
      return {};
    }
    case Step::Close:
      break;
    }
    replayer.reset();
    driver.reset();
    append(out, std::string_view(options.farewell ? options.farewell() : ""));
    return {};
  }

  Result<void> open(Bytes &out) {
    MGPU_TRY_ASSIGN(driver,
                    openRank(rank, [this] { return control.watch(rank); }));
    append(out, std::string_view(driver->description()));
    for (const std::vector<DeviceId> &group : members)
      if (group.front().value == int32_t(rank)) {
        MGPU_TRY_ASSIGN(device::GroupId id, driver->makeGroupId());
        append(out, id);
      }
    return {};
  }

  Result<void> build(Reader &asked) {
    std::vector<device::DeviceGroup> groups;
    for (const std::vector<DeviceId> &group : members)
      groups.push_back({group, asked.take<device::GroupId>()});
    MGPU_TRY(driver->join(groups));
    auto meet = [this] {
      return control.meet(rank, uint32_t(members[0].size()), options.deadline);
    };
    MGPU_TRY_ASSIGN(auto made,
                    capture::Replayer::create(dag, plan, kernels, *driver,
                                              {hostMemory, meet}));
    replayer.emplace(std::move(made));
    return {};
  }

  uint32_t rank;
  const planner::Dag &dag;
  const planner::Plan &plan;
  const std::vector<std::vector<std::byte>> &kernels;
  std::vector<std::vector<DeviceId>> members;
  Open openRank;
  Options options;
  SharedControl &control;
  std::span<std::byte> hostMemory;
  std::unique_ptr<device::Driver> driver;
  std::optional<capture::Replayer> replayer;
};

Result<std::unique_ptr<CardWorkers>>
CardWorkers::start(const planner::Dag &dag, const planner::Plan &plan,
                   const std::vector<std::vector<std::byte>> &kernels,
                   Open open, Options options) {
  MGPU_TRY(capture::checkAcrossCards(dag));
  const uint32_t ranks = dag.numDevices;
  if (ranks > SharedControl::maxRanks)
    return fail(
        ErrorKind::Unsupported,
        fmt::format("{} cards, more than {}", ranks, SharedControl::maxRanks));
  auto members = capture::communicatingGroups(dag);
  capture::HostLayout layout = capture::hostLayout(dag);
  std::unique_ptr<CardWorkers> out(new CardWorkers);
  out->options = std::move(options);
  MGPU_TRY_ASSIGN(out->memory, SharedMemory::make(controlBytes + layout.bytes));
  std::span<std::byte> host = out->memory.bytes().subspan(controlBytes);
  MGPU_TRY(capture::writeConstants(dag, layout, host));
  for (size_t k = 0; k < dag.buffers.size(); ++k)
    out->hostBuffers.push_back(
        dag.buffers[k].device.isHost()
            ? host.subspan(layout.offsets[k], size_t(dag.buffers[k].sizeBytes))
            : std::span<std::byte>());
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    auto state = std::make_shared<Rank>(rank, dag, plan, kernels, members, open,
                                        out->options, out->memory.bytes());
    MGPU_TRY_ASSIGN(
        tuner::Worker worker,
        tuner::Worker::start(
            [state](std::span<const std::byte> asked) -> tuner::Outcome<Bytes> {
              return state->answer(asked);
            }));
    out->workers.push_back(std::move(worker));
  }
  // Opening cards and connecting them takes as long as it takes.
  const auto patience =
      out->options.deadline.count() > 0
          ? std::max<std::chrono::milliseconds>(out->options.deadline,
                                                std::chrono::minutes(1))
          : std::chrono::milliseconds(0);
  MGPU_TRY_ASSIGN(std::vector<Bytes> opened,
                  out->askAll(request(Step::Open), "opening", patience));
  std::vector<Reader> said(opened.begin(), opened.end());
  for (Reader &each : said)
    out->described.push_back(each.text());
  Bytes build = request(Step::Build);
  for (const std::vector<DeviceId> &group : members)
    append(build, said[size_t(group.front().value)].take<device::GroupId>());
  MGPU_TRY(out->askAll(build, "building", patience));
  return out;
}

CardWorkers::~CardWorkers() {
  if (!memory.bytes().empty())
    controlOf(memory).abort();
}

std::span<std::byte> CardWorkers::hostBuffer(planner::BufferId id) {
  return id.value < hostBuffers.size() ? hostBuffers[id.value]
                                       : std::span<std::byte>();
}

tl::unexpected<Error> CardWorkers::lose(const char *what,
                                        std::vector<Result<Bytes>> said,
                                        const std::vector<bool> &isDead) {
  // First who died, then who failed of itself, then who gave up for that.
  auto weight = [&](size_t rank) {
    if (isDead[rank])
      return 0;
    return said[rank].error().message.find("given up, because") ==
                   std::string::npos
               ? 1
               : 2;
  };
  std::vector<std::pair<int, size_t>> order;
  for (size_t rank = 0; rank < said.size(); ++rank)
    if (!said[rank])
      order.push_back({weight(rank), rank});
  std::sort(order.begin(), order.end());
  std::string text = fmt::format("{} on several cards failed", what);
  for (auto [how, rank] : order)
    text += fmt::format("; rank {}{} {}", rank,
                        rank < options.names.size()
                            ? fmt::format(" ({})", options.names[rank])
                            : "",
                        said[rank].error().message);
  lost = text;
  return fail(said[order.front().second].error().kind, std::move(text));
}

Result<std::vector<Bytes>>
CardWorkers::askAll(const Bytes &request, const char *what,
                    std::chrono::milliseconds patience) {
  if (!lost.empty())
    return fail(ErrorKind::Invalid,
                fmt::format("the cards were lost before ({}): start the "
                            "program again",
                            lost));
  SharedControl &control = controlOf(memory);
  constexpr double sendSeconds = 10, answerSeconds = 60;
  std::vector<Result<Bytes>> said(workers.size(), Bytes());
  std::vector<bool> isDead(workers.size(), false);
  std::vector<tuner::Worker *> waiting;
  std::optional<Clock::time_point> failedAt;
  auto failAt = [&](size_t rank, ErrorKind kind, std::string text, bool died) {
    said[rank] = fail(kind, std::move(text));
    isDead[rank] = died;
    waiting[rank] = nullptr;
    if (!failedAt)
      failedAt = Clock::now();
    control.abort();
  };
  for (tuner::Worker &worker : workers)
    waiting.push_back(&worker);
  for (size_t rank = 0; rank < workers.size(); ++rank)
    if (auto sent = workers[rank].post(request, sendSeconds); !sent)
      failAt(rank, ErrorKind::Absent, sent.error().what, true);
  auto isWaiting = [&] {
    return std::any_of(waiting.begin(), waiting.end(),
                       [](tuner::Worker *each) { return each != nullptr; });
  };
  uint64_t signs = control.signs();
  Clock::time_point signAt = Clock::now();
  while (isWaiting()) {
    if (auto rank = tuner::Worker::firstReady(waiting, 0.05)) {
      auto got = workers[*rank].receive(answerSeconds);
      if (!got) {
        failAt(*rank, ErrorKind::Absent, got.error().what, true);
        continue;
      }
      Reader answer(*got);
      if (auto code = answer.take<uint8_t>())
        failAt(*rank, ErrorKind(code - 1), answer.text(), false);
      else
        said[*rank] = Bytes(got->begin() + 1, got->end());
      waiting[*rank] = nullptr;
      continue;
    }
    if (uint64_t now = control.signs(); now != signs) {
      signs = now;
      signAt = Clock::now();
    }
    // Every rank watches its own waits: one that gives no sign for so long
    // after its deadline is stuck in a call.
    const auto limit = patience + 2 * options.grace;
    bool isStuck = patience.count() > 0 && Clock::now() - signAt > limit;
    bool isOver = failedAt && Clock::now() - *failedAt > options.grace;
    if (!isStuck && !isOver)
      continue;
    for (size_t rank = 0; rank < workers.size(); ++rank)
      if (waiting[rank]) {
        ::kill(workers[rank].process(), SIGKILL);
        failAt(rank, ErrorKind::Absent,
               "gave no answer and was ended: a call of CUDA or NCCL does not "
               "return",
               true);
      }
  }
  if (failedAt)
    return lose(what, std::move(said), isDead);
  std::vector<Bytes> out;
  for (Result<Bytes> &each : said)
    out.push_back(std::move(*each));
  return out;
}

Result<void> CardWorkers::load() {
  MGPU_TRY(askAll(request(Step::Load), "the load"));
  return {};
}

Result<void> CardWorkers::fetch() {
  MGPU_TRY(askAll(request(Step::Fetch), "the fetch"));
  return {};
}

Result<std::vector<double>> CardWorkers::replay(uint64_t count) {
  Bytes asked = request(Step::Replay);
  append(asked, count);
  MGPU_TRY_ASSIGN(std::vector<Bytes> said, askAll(asked, "the replay"));
  std::vector<double> out(count, 0);
  for (const Bytes &each : said) {
    Reader reader(each);
    for (double &longest : out)
      longest = std::max(longest, reader.take<double>());
  }
  return out;
}

Result<std::vector<capture::TimedReplay>> CardWorkers::replayTimed() {
  MGPU_TRY_ASSIGN(std::vector<Bytes> said,
                  askAll(request(Step::Timed), "the timed replay"));
  std::vector<capture::TimedReplay> out;
  for (const Bytes &each : said) {
    Reader reader(each);
    capture::TimedReplay &timed = out.emplace_back();
    for (auto left = reader.take<uint64_t>(); left > 0; --left)
      timed.nodes.push_back(reader.take<capture::NodeSpan>());
    while (!reader.isEmpty())
      timed.host.push_back(reader.take<device::HostSpan>());
  }
  return out;
}

Result<void> CardWorkers::close() {
  MGPU_TRY_ASSIGN(std::vector<Bytes> said,
                  askAll(request(Step::Close), "the end"));
  for (size_t rank = 0; rank < said.size(); ++rank)
    if (std::string complaint = Reader(said[rank]).text(); !complaint.empty())
      return fail(ErrorKind::Internal,
                  fmt::format("rank {}: {}", rank, complaint));
  return {};
}

} // namespace mgpu::tune
