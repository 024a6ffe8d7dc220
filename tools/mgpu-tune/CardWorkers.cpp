// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/mgpu-tune/CardWorkers.h"

#include "capture/graph/Cards.h"
#include "support/Clock.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <deque>
#include <fmt/format.h>

namespace mgpu::tune {

namespace {

/// The first byte of a request.
enum class Step : uint8_t {
  Open,
  Build,
  Load,
  Replay,
  Fetch,
  Timed,
  Work,
  Close
};

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

using Ids = std::vector<device::GroupId>;

void append(Bytes &to, const Ids &ids) {
  append(to, uint64_t(ids.size()));
  for (const device::GroupId &id : ids)
    append(to, id);
}

Ids takeIds(Reader &from) {
  Ids ids;
  for (auto left = from.take<uint64_t>(); left > 0 && !from.isEmpty(); --left)
    ids.push_back(from.take<device::GroupId>());
  return ids;
}

Bytes request(Step step) {
  Bytes out;
  append(out, step);
  return out;
}

} // namespace

/// What the process of a rank has.
class CardWorkers::Rank {
public:
  Rank(uint32_t rank, capture::CardRank::Job job,
       const capture::CardMemory &memory, Farewell farewell, Work work)
      : rank(rank), job(std::move(job)), card(rank, this->job, memory),
        farewell(std::move(farewell)), work(std::move(work)) {}

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
      return card.replayer().load();
    case Step::Fetch:
      return card.replayer().fetch();
    case Step::Replay:
      for (auto left = asked.take<uint64_t>(); left > 0; --left) {
        Clock::time_point start = Clock::now();
        MGPU_TRY(card.replayer().replay());
        append(out, microsecondsSince(start));
      }
      return {};
    case Step::Timed: {
      MGPU_TRY_ASSIGN(capture::TimedReplay timed,
                      card.replayer().replayTimed());
      append(out, uint64_t(timed.nodes.size()));
      for (const capture::NodeSpan &span : timed.nodes)
        append(out, span);
      for (const device::HostSpan &span : timed.host)
        append(out, span);
      return {};
    }
    case Step::Work: {
      MGPU_TRY_ASSIGN(std::string said, work(rank, card));
      append(out, std::string_view(said));
      return {};
    }
    case Step::Close:
      break;
    }
    MGPU_TRY(card.close());
    append(out, std::string_view(farewell ? farewell() : ""));
    return {};
  }

  Result<void> open(Bytes &out) {
    MGPU_TRY_ASSIGN(auto ids, card.open());
    append(out, std::string_view(card.description()));
    append(out, ids);
    return {};
  }

  Result<void> build(Reader &asked) {
    std::vector<Ids> led;
    for (uint32_t k = 0; k < job.dag.numDevices; ++k)
      led.push_back(takeIds(asked));
    return card.build(led);
  }

  const uint32_t rank;
  const capture::CardRank::Job job;
  capture::CardRank card;
  Farewell farewell;
  Work work;
};

Result<std::unique_ptr<CardWorkers>>
CardWorkers::start(const planner::Dag &dag, const planner::Plan &plan,
                   const std::vector<std::vector<std::byte>> &kernels,
                   Open open, Options options) {
  MGPU_TRY(capture::checkAcrossCards(dag));
  const uint32_t ranks = dag.numDevices;
  std::unique_ptr<CardWorkers> out(new CardWorkers(ranks, options));
  MGPU_TRY_ASSIGN(out->memory, capture::CardMemory::make(dag));
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    auto state = std::make_shared<Rank>(
        rank,
        capture::CardRank::Job{dag, plan, kernels, open, options.meeting()},
        out->memory, options.farewell, options.work);
    MGPU_TRY_ASSIGN(
        ChildProcess worker,
        ChildProcess::start(
            [state](std::span<const std::byte> asked) -> Outcome<Bytes> {
              return state->answer(asked);
            }));
    out->workers.push_back(std::move(worker));
  }
  const auto patience = out->limits.patience();
  MGPU_TRY_ASSIGN(std::vector<Bytes> opened,
                  out->askAll(request(Step::Open), "opening", patience));
  Bytes build = request(Step::Build);
  for (const Bytes &each : opened) {
    Reader said(each);
    out->described.push_back(said.text());
    append(build, takeIds(said));
  }
  MGPU_TRY(out->askAll(build, "building", patience));
  return out;
}

CardWorkers::~CardWorkers() {
  if (!memory.isEmpty())
    memory.control().abort();
}

Result<std::vector<Bytes>>
CardWorkers::askAll(const Bytes &request, const char *what,
                    std::chrono::milliseconds patience) {
  MGPU_TRY(steps.checkAlive());
  constexpr double sendSeconds = 10, answerSeconds = 60;
  std::vector<Bytes> out(workers.size());
  std::vector<ChildProcess *> waiting;
  std::deque<capture::CardAnswer> unsent;
  for (ChildProcess &worker : workers)
    waiting.push_back(&worker);
  auto died = [&](size_t rank, const Fault &fault) {
    waiting[rank] = nullptr;
    return capture::CardAnswer{rank, fail(ErrorKind::Absent, fault.what), true};
  };
  for (size_t rank = 0; rank < workers.size(); ++rank)
    if (auto sent = workers[rank].post(request, sendSeconds); !sent)
      unsent.push_back(died(rank, sent.error()));
  auto next = [&](double seconds) -> std::optional<capture::CardAnswer> {
    if (!unsent.empty()) {
      capture::CardAnswer answer = std::move(unsent.front());
      unsent.pop_front();
      return answer;
    }
    auto rank = ChildProcess::firstReady(waiting, seconds);
    if (!rank)
      return std::nullopt;
    auto got = workers[*rank].receive(answerSeconds);
    if (!got)
      return died(*rank, got.error());
    waiting[*rank] = nullptr;
    Reader answer(*got);
    if (auto code = answer.take<uint8_t>())
      return capture::CardAnswer{*rank,
                                 fail(ErrorKind(code - 1), answer.text())};
    out[*rank] = Bytes(got->begin() + 1, got->end());
    return capture::CardAnswer{*rank, {}};
  };
  auto end = [&](size_t rank) -> std::string {
    ::kill(workers[rank].process(), SIGKILL);
    waiting[rank] = nullptr;
    return "was ended";
  };
  MGPU_TRY(steps.gather(what, patience, memory.control(), next, end));
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

Result<std::vector<std::string>> CardWorkers::work(const char *what) {
  MGPU_TRY_ASSIGN(std::vector<Bytes> said, askAll(request(Step::Work), what));
  std::vector<std::string> out;
  for (const Bytes &each : said)
    out.push_back(Reader(each).text());
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
