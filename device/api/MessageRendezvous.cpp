// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/api/MessageRendezvous.h"

#include "support/Clock.h"
#include "support/Escape.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace mgpu::device {

Result<void> agree(const Facts &facts, Rendezvous &others) {
  Bytes mine;
  for (const auto &[name, value] : facts)
    append(mine, value);
  MGPU_TRY_ASSIGN(const std::vector<Bytes> all, others.exchange(mine));
  for (uint32_t rank = 1; rank < all.size(); ++rank) {
    ByteReader first(all[0]), here(all[rank]);
    for (const auto &fact : facts) {
      const std::string a = first.text(), b = here.text();
      if (a != b)
        return fail(ErrorKind::Absent,
                    fmt::format("rank {} has another {} than rank 0: '{}', and "
                                "not '{}'; give all ranks the same",
                                rank, fact.first, escaped(b), escaped(a)));
    }
  }
  return {};
}

using std::chrono::microseconds;

/// The most bytes that exchange() takes of one rank, which sends kernels at the
/// most.
static constexpr uint64_t mostExchanged = uint64_t(1) << 32;
/// How much is printed of why another rank failed.
static constexpr size_t longestWords = 1 << 16;

MessageRendezvous::MessageRendezvous(std::unique_ptr<Channel> channel,
                                     std::chrono::milliseconds deadline,
                                     std::chrono::milliseconds grace)
    : channel(std::move(channel)), deadline(deadline), grace(grace),
      nodes(count()), heard(count()), left(count()), gone(count()) {
  heard[rank()] = left[rank()] = true;
}

MessageRendezvous::~MessageRendezvous() { leave(); }

Result<void> MessageRendezvous::tellNode(const std::string &name) {
  MGPU_TRY_ASSIGN(const std::vector<Bytes> names,
                  exchange(std::as_bytes(std::span(name))));
  std::map<Bytes, uint32_t> numbers;
  for (uint32_t each = 0; each < count(); ++each)
    nodes[each] =
        numbers.emplace(names[each], uint32_t(numbers.size())).first->second;
  return {};
}

std::vector<uint32_t> MessageRendezvous::ranksByNode() const {
  std::vector<uint32_t> ranks(count());
  std::iota(ranks.begin(), ranks.end(), 0);
  std::ranges::sort(
      ranks, {}, [&](uint32_t rank) { return std::pair(nodes[rank], rank); });
  return ranks;
}

Result<void> MessageRendezvous::watch() {
  std::lock_guard<std::mutex> lock(mutex);
  if (lost)
    return fail(*lost);
  return listen();
}

Result<void> MessageRendezvous::meet() {
  MGPU_TRY(exchange({}));
  return {};
}

Result<double> MessageRendezvous::largest(double mine) {
  MGPU_TRY_ASSIGN(const std::vector<Bytes> all,
                  exchange(std::as_bytes(std::span(&mine, 1))));
  for (const Bytes &each : all)
    mine = std::max(mine, ByteReader(each).take<double>());
  return mine;
}

/// The lengths go first, as nobody knows those of the others.
Result<std::vector<Bytes>>
MessageRendezvous::exchange(std::span<const std::byte> mine) {
  std::vector<uint64_t> sizes(count(), mine.size());
  const uint64_t size = mine.size();
  std::vector<Outgoing> sends;
  std::vector<Incoming> recvs;
  for (uint32_t other = 0; other < count(); ++other)
    if (other != rank()) {
      sends.push_back({other, std::as_bytes(std::span(&size, 1))});
      recvs.push_back(
          {other, std::as_writable_bytes(std::span(&sizes[other], 1))});
    }
  MGPU_TRY(transfer(sends, recvs, "a step of all ranks"));
  for (uint32_t other = 0; other < count(); ++other)
    if (other != rank() && sizes[other] > mostExchanged)
      return fail(ErrorKind::Absent,
                  fmt::format("rank {} announces {} bytes, more than a rank "
                              "has to say",
                              other, sizes[other]));
  std::vector<Bytes> all(count());
  all[rank()].assign(mine.begin(), mine.end());
  for (Outgoing &send : sends)
    send.bytes = mine;
  for (Incoming &recv : recvs) {
    all[recv.from].resize(sizes[recv.from]);
    recv.bytes = all[recv.from];
  }
  std::erase_if(sends, [](const Outgoing &send) { return send.bytes.empty(); });
  std::erase_if(recvs, [](const Incoming &recv) { return recv.bytes.empty(); });
  MGPU_TRY(transfer(sends, recvs, "a step of all ranks"));
  return all;
}

Result<void> MessageRendezvous::transfer(std::span<const Outgoing> sends,
                                         std::span<const Incoming> recvs,
                                         const std::string &what) {
  std::lock_guard<std::mutex> lock(mutex);
  if (lost)
    return fail(*lost);
  channel->start(sends, recvs);
  uint64_t bytes = 0;
  for (const Outgoing &send : sends)
    bytes += send.bytes.size();
  for (const Incoming &recv : recvs)
    bytes += recv.bytes.size();
  Result<void> done = run(what, bytes);
  if (!done)
    channel->abandon(); // the bytes are the caller's again
  return done;
}

std::string MessageRendezvous::lateness(const std::string &what) const {
  return fmt::format("waited {} ms for rank {} in {}", deadline.count(),
                     channel->awaited().value_or(rank()), what);
}

/// A message between processes of one machine takes some microseconds, so the
/// first looks yield to others alone. Then naps grow: the core is worth more.
/// Long messages go on while this looks, so it looks for longer.
Result<void> MessageRendezvous::run(const std::string &what, uint64_t bytes) {
  const uint64_t mostLooks = 200 + bytes / 1024;
  const Clock::time_point start = Clock::now();
  microseconds nap{0};
  for (uint32_t turn = 0;; ++turn) {
    auto isDone = channel->advance();
    if (!isDone)
      return lose(ErrorKind::Absent,
                  fmt::format("{}: {}", what, isDone.error().message),
                  ErrorCause::Own, Silent::Unnamed);
    if (*isDone)
      return {};
    if (turn % 16 == 15) {
      MGPU_TRY(listen());
      if (deadline.count() > 0 && Clock::now() - start > deadline)
        return lose(ErrorKind::Absent, lateness(what), ErrorCause::Own);
    }
    if (turn > mostLooks)
      nap = std::clamp(nap * 5 / 4, microseconds(10), microseconds(1000));
    channel->wait(nap);
  }
}

Result<void> MessageRendezvous::listen() {
  while (auto notice = channel->heard()) {
    const uint32_t from = notice->from;
    note(*notice);
    if (notice->kind == Notice::Kind::Abort)
      return lose(ErrorKind::Absent,
                  fmt::format("given up, because rank {} failed: {}", from,
                              escaped(notice->text, longestWords)),
                  ErrorCause::OtherRank);
    if (notice->kind == Notice::Kind::Ended)
      return loseTo(from);
  }
  // One that has left in order is none that this rank still waits for, once it
  // has looked at what came before the notice.
  if (auto late = channel->awaited(); late && left[*late])
    if (auto isDone = channel->advance();
        isDone && !*isDone && channel->awaited() == late)
      return loseTo(*late);
  return {};
}

void MessageRendezvous::note(const Notice &notice) {
  heard[notice.from] = true;
  if (notice.kind != Notice::Kind::Abort)
    left[notice.from] = true;
  if (notice.kind == Notice::Kind::Ended)
    gone[notice.from] = true;
}

tl::unexpected<Error> MessageRendezvous::loseTo(uint32_t rank) {
  return lose(ErrorKind::Absent,
              fmt::format("rank {} ended without a word", rank),
              ErrorCause::Own);
}

void MessageRendezvous::tellAll(const Notice &notice) {
  for (uint32_t other = 0; other < count(); ++other)
    if (other != rank() && !gone[other])
      channel->tell(other, notice);
}

void MessageRendezvous::awaitWords(std::vector<bool> &said,
                                   std::chrono::milliseconds most) {
  const Clock::time_point start = Clock::now();
  while (std::find(said.begin(), said.end(), false) != said.end() &&
         (most.count() == 0 || Clock::now() - start < most)) {
    (void)channel->advance(); // what is half sent stands before the notices
    while (auto notice = channel->heard()) {
      note(*notice);
    }
    channel->wait(microseconds(500));
  }
}

tl::unexpected<Error> MessageRendezvous::lose(ErrorKind kind, std::string text,
                                              ErrorCause cause,
                                              Silent silence) {
  // The words of the rank that failed first are passed on as they are.
  const size_t words = text.find(": ");
  const bool isTold = cause == ErrorCause::OtherRank;
  tellAll(
      {Notice::Kind::Abort, rank(), isTold ? text.substr(words + 2) : text});
  hasTold = true;
  awaitWords(heard, grace);
  std::string silent;
  for (uint32_t other = 0; other < count(); ++other)
    if (!heard[other])
      silent += fmt::format("{}rank {}", silent.empty() ? "" : ", ", other);
  if (silence == Silent::Named && !silent.empty())
    text += fmt::format("; nothing was heard of {}", silent);
  for (uint32_t other = 0; other < count(); ++other)
    if (gone[other] && text.find(fmt::format("rank {} ", other)) == text.npos)
      text += fmt::format("; rank {} is gone", other);
  lost = Error{.kind = kind, .message = std::move(text), .cause = cause};
  return fail(*lost);
}

void MessageRendezvous::abort(const std::string &reason) {
  std::lock_guard<std::mutex> lock(mutex);
  if (!lost)
    lost = Error{.kind = ErrorKind::Absent,
                 .message = "given up: " + reason,
                 .cause = ErrorCause::Own};
  if (!hasTold)
    tellAll({Notice::Kind::Abort, rank(), reason});
  hasTold = true;
}

Error MessageRendezvous::giveUp(Error error) {
  std::lock_guard<std::mutex> lock(mutex);
  if (lost || isOver)
    return error;
  return lose(error.kind, std::move(error.message), error.cause,
              error.kind == ErrorKind::Internal ? Silent::Unnamed
                                                : Silent::Named)
      .value();
}

void MessageRendezvous::leave() {
  std::lock_guard<std::mutex> lock(mutex);
  if (std::exchange(isOver, true))
    return;
  tellAll({Notice::Kind::Leave, rank(), ""});
  awaitWords(left, lost ? grace : deadline);
  const bool areAllThere =
      std::find(left.begin(), left.end(), false) == left.end();
  channel->close(!lost && areAllThere);
}

} // namespace mgpu::device
