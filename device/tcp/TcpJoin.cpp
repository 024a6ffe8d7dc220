// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/tcp/Handshake.h"
#include "device/tcp/TcpChannel.h"
#include "support/Escape.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <deque>
#include <poll.h>
#include <unistd.h>
#include <vector>

namespace mgpu::device {

// Where ranks meet that torchrun or srun has started.

namespace {

using Names = std::vector<const char *>;

/// The first of these that is set; null: none is.
const char *firstSet(const Names &names) {
  for (const char *name : names)
    if (std::getenv(name))
      return name;
  return nullptr;
}

Result<uint32_t> numberOf(const char *name, uint32_t most) {
  const char *text = std::getenv(name);
  const std::string_view value = text ? text : "";
  uint32_t number = 0;
  auto [end, error] =
      std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() ||
      number > most)
    return fail(ErrorKind::Usage,
                fmt::format("{} is '{}': it must be a number of at most {}",
                            name, value, most));
  return number;
}

/// The first name of a list of Slurm's: of "gpu[007-009,12],login", "gpu007".
std::string firstNode(std::string_view list) {
  const size_t bracket = list.find_first_of("[,");
  if (bracket == std::string_view::npos || list[bracket] == ',')
    return std::string(list.substr(0, bracket));
  const std::string_view numbers = list.substr(bracket + 1);
  return std::string(list.substr(0, bracket)) +
         std::string(numbers.substr(0, numbers.find_first_of("-,]")));
}

/// Whether such a list is of more nodes than one: "gpu-a[3]" is not.
bool hasSeveral(std::string_view list) {
  bool isInside = false;
  for (char c : list) {
    isInside = c == '[' || (isInside && c != ']');
    if (c == ',' || (isInside && c == '-'))
      return true;
  }
  return false;
}

/// Where rank 0 is, by this variable; null: nothing says it. Nobody has to be
/// reached from outside where all ranks are on one node.
std::string addressIn(const char *name) {
  const std::string_view value = name ? std::getenv(name) : "127.0.0.1";
  if (!name || std::string_view(name) == "MASTER_ADDR")
    return std::string(value);
  return hasSeveral(value) ? firstNode(value) : "127.0.0.1";
}

/// Slurm names no port, so it is of the job and of the step.
Result<uint16_t> portOfStep() {
  constexpr uint32_t first = 15000, count = 15000, most = uint32_t(-1);
  MGPU_TRY_ASSIGN(const uint32_t job, numberOf("SLURM_JOB_ID", most));
  uint32_t step = 0;
  if (firstSet({"SLURM_STEP_ID"})) {
    MGPU_TRY_ASSIGN(step, numberOf("SLURM_STEP_ID", most));
  }
  return uint16_t(first + (job % count * 31 + step % count) % count);
}

/// Workers of torchrun find its own store at MASTER_PORT, so theirs is the
/// next.
Result<uint16_t> portOfMaster() {
  constexpr uint32_t most = 65535;
  MGPU_TRY_ASSIGN(const uint32_t port, numberOf("MASTER_PORT", most));
  const char *store = std::getenv("TORCHELASTIC_USE_AGENT_STORE");
  const bool isTaken = store && std::string_view(store) == "True";
  return uint16_t(isTaken ? port % most + 1 : port);
}

} // namespace

Result<std::optional<TcpPlace>> tcpPlaceOfEnvironment() {
  struct Fact {
    const char *name;
    Names asked;
  };
  const Fact facts[] = {
      {"RANK", {"RANK", "SLURM_PROCID"}},
      {"WORLD_SIZE", {"WORLD_SIZE", "SLURM_NTASKS"}},
      {"MASTER_ADDR",
       {"MASTER_ADDR", "SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"}},
      {"MASTER_PORT", {"MGPU_PORT", "MASTER_PORT", "SLURM_JOB_ID"}}};
  constexpr size_t addressFact = 2;
  const char *found[4];
  std::string missing;
  size_t numFound = 0;
  for (size_t k = 0; k < 4; ++k) {
    found[k] = firstSet(facts[k].asked);
    numFound += found[k] ? 1 : 0;
    if (!found[k] && missing.empty() && k != addressFact)
      missing = facts[k].name;
  }
  if (numFound == 0)
    return std::optional<TcpPlace>();
  if (!missing.empty())
    return fail(ErrorKind::Usage,
                fmt::format("{} is not set: ranks that meet without MPI need "
                            "MASTER_PORT, RANK and WORLD_SIZE, and MASTER_ADDR "
                            "where rank 0 is not on this machine, or Slurm's "
                            "variables",
                            missing));
  TcpPlace place;
  MGPU_TRY_ASSIGN(place.rank, numberOf(found[0], 1 << 16));
  MGPU_TRY_ASSIGN(place.count, numberOf(found[1], 1 << 16));
  place.address = addressIn(found[addressFact]);
  MGPU_TRY_ASSIGN(place.secret, secretOfEnvironment());
  const std::string_view port = found[3];
  if (port == "MGPU_PORT") {
    MGPU_TRY_ASSIGN(place.port, numberOf(found[3], 65535));
  } else {
    MGPU_TRY_ASSIGN(place.port,
                    port == "MASTER_PORT" ? portOfMaster() : portOfStep());
  }
  if (place.rank >= place.count)
    return fail(ErrorKind::Usage,
                fmt::format("{} is {}, and {} {}: ranks are below it", found[0],
                            place.rank, found[1], place.count));
  return std::optional(std::move(place));
}

// Where a rank waits for the others. Anyone may connect: all connections are
// served at once, so that one that says nothing delays nobody, and only a
// number of them is kept, so that many do not use up what the process may open.

namespace {

/// A rank that has proven that it has the secret.
struct Guest {
  TcpSocket socket;
  Hello hello;
  std::string address; ///< where it came from
};

class Reception {
public:
  Reception(TcpSocket listening, Membership here)
      : listening(std::move(listening)), here(std::move(here)) {}
  Reception(const Reception &) = delete; // visitors know where it is

  /// The next rank that comes. Absent where none does before `until`.
  Result<Guest> next(TcpSocket::Deadline until);
  TcpAddress address() const { return localOf(listening); }
  /// How many have come that proved nothing.
  uint64_t numStrangers() const { return strangers; }

private:
  struct Visitor {
    TcpSocket socket;
    std::string address;
    Admission admission;
  };
  void await(TcpSocket::Deadline until);
  void takeAll();
  /// Whether the visitor is a guest; closes its socket where it is a stranger.
  bool serve(Visitor &visitor);
  void dismissFirst();

  TcpSocket listening;
  const Membership here;
  std::deque<Visitor> visitors; ///< the first came first
  uint64_t strangers = 0;
};

} // namespace

/// A rank says at once what it has to say, so who came long before many others
/// and has not is none. A rank that is sent away comes again.
static constexpr size_t mostVisitors = 256;

/// Sleeps until something has come, no longer than a moment.
void Reception::await(TcpSocket::Deadline until) {
  std::vector<pollfd> all{{listening.get(), POLLIN, 0}};
  for (const Visitor &each : visitors)
    all.push_back({each.socket.get(), POLLIN, 0});
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      until - std::chrono::steady_clock::now());
  (void)::poll(all.data(), all.size(),
               int(std::clamp<int64_t>(left.count() + 1, 0, 1000)));
}

void Reception::dismissFirst() {
  visitors.pop_front();
  ++strangers;
}

/// Lets in some of those that wait, and not all at once, so that those that are
/// in are served in between.
void Reception::takeAll() {
  for (size_t k = 0; k < mostVisitors / 4; ++k) {
    auto come = acceptOne(listening);
    if (!come && !visitors.empty()) {
      dismissFirst();
      continue;
    }
    if (!come || !come->first.isOpen())
      return;
    if (visitors.size() == mostVisitors)
      dismissFirst();
    visitors.push_back(
        {std::move(come->first), come->second.host(), Admission(here)});
  }
}

bool Reception::serve(Visitor &visitor) {
  while (true) {
    const std::span<std::byte> room = visitor.admission.room();
    const ssize_t done = ::recv(visitor.socket.get(), room.data(), room.size(),
                                MSG_DONTWAIT | MSG_NOSIGNAL);
    if (done < 0 && errno == EINTR)
      continue;
    if (done < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
      return false;
    const auto step = done > 0 ? visitor.admission.took(size_t(done))
                               : Admission::Step::Refuse;
    bool isStranger = step == Admission::Step::Refuse;
    if (step == Admission::Step::Reply || step == Admission::Step::Welcome) {
      // It is short, and nothing waits before it.
      const auto reply = visitor.admission.reply();
      isStranger = ::send(visitor.socket.get(), reply.data(), reply.size(),
                          MSG_DONTWAIT | MSG_NOSIGNAL) != ssize_t(reply.size());
    }
    if (isStranger)
      visitor.socket.close();
    if (isStranger || step == Admission::Step::Welcome)
      return !isStranger;
  }
}

Result<Guest> Reception::next(TcpSocket::Deadline until) {
  do {
    await(until);
    takeAll();
    for (size_t k = 0; k < visitors.size();) {
      Visitor &visitor = visitors[k];
      const bool isGuest = serve(visitor);
      if (!isGuest && visitor.socket.isOpen()) {
        ++k;
        continue;
      }
      Guest guest{std::move(visitor.socket), visitor.admission.hello(),
                  std::move(visitor.address)};
      visitors.erase(visitors.begin() + ptrdiff_t(k));
      if (isGuest)
        return guest;
      ++strangers;
    }
  } while (std::chrono::steady_clock::now() < until);
  return fail(ErrorKind::Absent, "no rank came in time");
}

namespace {

using Until = TcpSocket::Deadline;

/// How much longer than the deadline a rank waits for words about others, who
/// wait until the deadline themselves.
constexpr std::chrono::seconds grace{2};

/// How long a host may take to answer before a guest tries again.
constexpr std::chrono::seconds patience{5};

std::string textOf(const Bytes &bytes) {
  return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

Result<void> sendText(TcpSocket &to, std::span<const std::byte> bytes,
                      Until until) {
  const uint64_t size = bytes.size();
  MGPU_TRY(to.sendAll(std::as_bytes(std::span(&size, 1)), until));
  return to.sendAll(bytes, until);
}

Result<Bytes> receiveText(TcpSocket &from, Until until) {
  uint64_t size = 0;
  MGPU_TRY(from.receiveAll(std::as_writable_bytes(std::span(&size, 1)), until));
  if (size > 1 << 24)
    return fail(ErrorKind::Absent, "what listens there is no rank of mgpu");
  Bytes out(size);
  MGPU_TRY(from.receiveAll(out, until));
  return out;
}

/// The addresses of `name` that a job may use: without a secret only those
/// that no other machine reaches.
Result<std::vector<TcpAddress>> addressesOf(const std::string &name,
                                            uint16_t port,
                                            std::span<const std::byte> secret) {
  MGPU_TRY_ASSIGN(std::vector<TcpAddress> all, lookUp(name, port));
  if (!secret.empty() || all.empty())
    return all;
  const std::string first = all.front().host();
  std::erase_if(all, [](const TcpAddress &each) { return !each.isLoopback(); });
  if (!all.empty())
    return all;
  return fail(ErrorKind::Invalid,
              fmt::format("ranks that meet at '{}' ({}) can be reached by "
                          "strangers, so they need a secret: run `mgpu-tune "
                          "secret ranks.secret` and start each rank with "
                          "MGPU_SECRET_FILE=ranks.secret, or meet at "
                          "MASTER_ADDR=127.0.0.1",
                          name, first));
}

/// The fault of a guest of rank 0; "" where there is none.
std::string faultOf(const Hello &hello, const TcpPlace &place,
                    const std::vector<Guest> &guests) {
  if (hello.count != place.count)
    return fmt::format(
        "rank 0 is one of {} ranks, and rank {} one of {}: start "
        "all with the same number",
        place.count, hello.rank, hello.count);
  if (hello.rank == 0 || hello.rank >= place.count)
    return fmt::format("a rank says it is rank {} of {}", hello.rank,
                       place.count);
  const TcpSocket &before = guests[hello.rank].socket;
  if (before.isOpen() && !before.hasEnded())
    return fmt::format("two ranks say they are rank {}", hello.rank);
  return "";
}

/// Rank 0: whether all have met all. Ranks that have not met all blame others,
/// so a rank that says nothing is the one that counts, if there is one. All are
/// told.
std::string verdict(std::vector<TcpSocket> &sockets, Until until) {
  std::string fault, silent;
  for (uint32_t k = 1; k < sockets.size(); ++k) {
    auto text = receiveText(sockets[k], until);
    if (!text && silent.empty())
      silent = fmt::format("rank {} was lost while the ranks met", k);
    else if (text && fault.empty())
      fault = textOf(*text);
  }
  if (!silent.empty())
    fault = silent;
  for (uint32_t k = 1; k < sockets.size(); ++k)
    (void)sendText(sockets[k], std::as_bytes(std::span(fault)), until + grace);
  return escaped(fault);
}

/// Rank 0: that the first of the ranks that are missing is late, and what else
/// may help to find out why.
std::string latenessOf(const std::vector<Guest> &guests, const TcpPlace &place,
                       const Reception &reception) {
  uint32_t missing = 1;
  while (guests[missing].socket.isOpen())
    ++missing;
  std::string text = fmt::format("rank {} did not come to {} port {} in time",
                                 missing, place.address, place.port);
  if (const std::string host = reception.address().host();
      host != place.address)
    text += fmt::format("; rank 0 listens at {} alone", host);
  if (reception.numStrangers() > 0)
    text += fmt::format("; {} connections did not prove this job's secret, "
                        "which is the same for all ranks",
                        reception.numStrangers());
  return text;
}

/// Rank 0: fills `guests`, by rank. Gives what is wrong, or "".
std::string receiveGuests(Reception &reception, const TcpPlace &place,
                          std::vector<Guest> &guests, Until until) {
  auto isMissing = [](const Guest &guest) { return !guest.socket.isOpen(); };
  while (std::any_of(guests.begin() + 1, guests.end(), isMissing)) {
    auto guest = reception.next(until);
    if (!guest)
      return latenessOf(guests, place, reception);
    const std::string fault = faultOf(guest->hello, place, guests);
    // One that is wrong has to be told, too.
    guests[fault.empty() ? guest->hello.rank : 0] = std::move(*guest);
    if (!fault.empty())
      return fault;
  }
  return "";
}

/// Rank 0 listens at the first address that is this machine's.
Result<TcpSocket> listenAt(const std::vector<TcpAddress> &addresses) {
  Result<TcpSocket> out = fail(ErrorKind::Absent, "rank 0 has no address");
  for (const TcpAddress &each : addresses)
    if (out = listenOn(each); out)
      break;
  return out;
}

/// Rank 0: an error text, empty, the number of the meeting, then where each
/// rank listens.
Result<std::vector<TcpSocket>> host(const TcpPlace &place, Until until) {
  MGPU_TRY_ASSIGN(const std::vector<TcpAddress> addresses,
                  addressesOf(place.address, place.port, place.secret));
  MGPU_TRY_ASSIGN(TcpSocket listening, listenAt(addresses));
  Nonce meeting;
  MGPU_TRY(fillRandomly(meeting));
  Reception reception(std::move(listening), {0, {}, place.secret});
  std::vector<Guest> guests(place.count);
  std::string fault = receiveGuests(reception, place, guests, until);
  Bytes table;
  append(table, fault);
  append(table, meeting);
  for (const Guest &guest : guests) {
    append(table, guest.address);
    append(table, uint16_t(guest.hello.port));
  }
  std::vector<TcpSocket> sockets(place.count);
  for (uint32_t k = 0; k < place.count; ++k)
    if (guests[k].socket.isOpen()) {
      // One that is gone by now says nothing later, which is what counts.
      (void)sendText(guests[k].socket, table, until);
      sockets[k] = std::move(guests[k].socket);
    }
  if (fault.empty())
    fault = verdict(sockets, until + grace);
  if (!fault.empty())
    return fail(ErrorKind::Absent, fault);
  return sockets;
}

/// A rank that meets others as a guest.
struct Visit {
  Hello hello;
  std::span<const std::byte> secret;
  TcpSocket listening; ///< at this end of the connection to rank 0
  Until until;
  std::string refusal{}; ///< the last, which says more than a lost connection

  Result<TcpSocket> greetAt(const TcpAddress &address) {
    MGPU_TRY_ASSIGN(TcpSocket out, connectTo(address));
    if (hello.to == 0) {
      MGPU_TRY_ASSIGN(listening, listenOn(localOf(out).withPort(0)));
      hello.port = localOf(listening).port();
    }
    const Until soon = std::chrono::steady_clock::now() + patience;
    auto met = enter(out, hello, secret, std::min(soon, until));
    if (met)
      return out;
    Error last =
        failIn(fmt::format("{} port {}: ", address.host(), address.port()),
               met.error())
            .value();
    // An answer that the deadline cut short says less than one heard before.
    if (refusal.empty() || std::chrono::steady_clock::now() < until)
      refusal = last.message;
    return fail(std::move(last));
  }

  /// Tries again and again, as the other end may not listen yet, and a
  /// stranger may listen there before.
  Result<TcpSocket> greet(uint32_t other, const std::string &name,
                          uint16_t port) {
    MGPU_TRY_ASSIGN(const std::vector<TcpAddress> addresses,
                    addressesOf(name, port, secret));
    hello.to = other;
    refusal.clear();
    while (true) {
      std::string last;
      for (const TcpAddress &each : addresses) {
        auto made = greetAt(each);
        if (made)
          return made;
        last = made.error().message;
      }
      if (std::chrono::steady_clock::now() >= until)
        return fail(ErrorKind::Absent,
                    fmt::format("rank {} is not met in time: {}", other,
                                refusal.empty() ? last : refusal));
      usleep(20'000);
    }
  }
};

/// Connects to the ranks below, and waits for those above. `table` is that of
/// host(), past the error.
Result<void> meetAll(Visit &visit, ByteReader table,
                     std::vector<TcpSocket> &sockets) {
  Hello &hello = visit.hello;
  table.take(hello.meeting);
  for (uint32_t other = 0; other < hello.rank; ++other) {
    const std::string address = table.text();
    const auto port = table.take<uint16_t>();
    if (other > 0) {
      MGPU_TRY_ASSIGN(sockets[other], visit.greet(other, address, port));
    }
  }
  Reception reception(std::move(visit.listening),
                      {hello.rank, hello.meeting,
                       Bytes(visit.secret.begin(), visit.secret.end())});
  for (uint32_t missing = hello.rank + 1; missing < hello.count;) {
    if (sockets[missing].isOpen()) {
      ++missing;
      continue;
    }
    auto guest = reception.next(visit.until);
    if (!guest)
      return fail(ErrorKind::Absent,
                  fmt::format("rank {} did not come to rank {} in time",
                              missing, hello.rank));
    if (guest->hello.rank <= hello.rank || guest->hello.rank >= hello.count)
      return fail(ErrorKind::Absent,
                  fmt::format("rank {} came to rank {}", guest->hello.rank,
                              hello.rank));
    sockets[guest->hello.rank] = std::move(guest->socket);
  }
  return {};
}

/// Every rank but the first.
Result<std::vector<TcpSocket>> visit(const TcpPlace &place, Until until) {
  Visit visit{{}, place.secret, {}, until};
  visit.hello.rank = place.rank;
  visit.hello.count = place.count;
  std::vector<TcpSocket> sockets(place.count);
  MGPU_TRY_ASSIGN(sockets[0], visit.greet(0, place.address, place.port));
  auto hear = [&](Until most) {
    auto text = receiveText(sockets[0], most);
    return text ? std::move(text)
                : Result<Bytes>(
                      failIn("rank 0 does not answer: ", text.error()));
  };
  MGPU_TRY_ASSIGN(const Bytes table, hear(until + grace));
  ByteReader reader(table);
  if (std::string fault = reader.text(); !fault.empty())
    return fail(ErrorKind::Absent, escaped(fault));
  const Result<void> met = meetAll(visit, reader, sockets);
  const std::string mine = met ? "" : met.error().message;
  MGPU_TRY(sendText(sockets[0], std::as_bytes(std::span(mine)), until + grace));
  MGPU_TRY_ASSIGN(const Bytes fault, hear(until + 3 * grace));
  if (!fault.empty())
    return fail(ErrorKind::Absent, escaped(textOf(fault)));
  return sockets;
}

} // namespace

Result<std::unique_ptr<Channel>> joinByTcp(const TcpPlace &place,
                                           std::chrono::milliseconds deadline) {
  if (deadline.count() == 0)
    deadline = std::chrono::hours(1);
  const Until until = std::chrono::steady_clock::now() + deadline;
  if (place.count == 1)
    return makeTcpChannel(0, std::vector<TcpSocket>(1));
  auto sockets = place.rank == 0 ? host(place, until) : visit(place, until);
  if (!sockets)
    return fail(std::move(sockets.error()));
  return makeTcpChannel(place.rank, std::move(*sockets));
}

} // namespace mgpu::device
