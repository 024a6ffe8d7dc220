// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/tcp/TcpChannel.h"

#include "support/Bytes.h"

#include <algorithm>
#include <cerrno>
#include <deque>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>

namespace mgpu::device {

namespace {

constexpr uint32_t data = 0; ///< else a Notice::Kind
constexpr size_t longestText = 1 << 16;

struct Header {
  uint32_t kind = data, rest = 0;
  uint64_t bytes = 0;
};

/// One to be sent; `text` holds what `body` of a notice shows.
struct Frame {
  Header header;
  Bytes text;
  std::span<const std::byte> body;
  size_t done = 0;
};

struct Peer {
  TcpSocket socket;
  std::deque<Frame> out;
  std::deque<std::span<std::byte>> wanted; ///< what data go into
  // The message being received.
  Header header;
  size_t headerBytes = 0, bodyBytes = 0;
  Bytes text;
  bool hasLeft = false;

  bool hasHeader() const { return headerBytes == sizeof header; }
  /// Whether a message is here that nobody has asked for yet.
  bool isEarly() const {
    return hasHeader() && header.kind == data && wanted.empty();
  }
};

class TcpChannel final : public Channel {
public:
  TcpChannel(uint32_t rank, std::vector<TcpSocket> sockets)
      : own(rank), peers(sockets.size()) {
    for (size_t k = 0; k < sockets.size(); ++k)
      peers[k].socket = std::move(sockets[k]);
  }

  uint32_t rank() const override { return own; }
  uint32_t count() const override { return uint32_t(peers.size()); }
  std::string library() const override { return "TCP"; }

  void start(std::span<const Outgoing> sends,
             std::span<const Incoming> recvs) override {
    for (const Outgoing &send : sends)
      peers[send.to].out.push_back(
          {{data, 0, send.bytes.size()}, {}, send.bytes});
    for (const Incoming &recv : recvs)
      peers[recv.from].wanted.push_back(recv.bytes);
  }

  Result<bool> advance() override {
    bool isDone = true;
    for (uint32_t k = 0; k < peers.size(); ++k) {
      Peer &peer = peers[k];
      if (!peer.out.empty())
        flush(k);
      if (!peer.wanted.empty())
        receive(k);
      isDone = isDone && peer.out.empty() && peer.wanted.empty();
    }
    if (!fault.empty())
      return fail(ErrorKind::Absent, fault);
    return isDone;
  }

  /// Messages that are half sent or received go on, as notices follow them.
  void abandon() override {
    for (Peer &peer : peers) {
      for (const std::span<std::byte> into : peer.wanted)
        unwanted.resize(std::max(unwanted.size(), into.size()));
      for (Frame &frame : peer.out)
        if (frame.header.kind == data) {
          frame.text.assign(frame.body.begin(), frame.body.end());
          frame.body = frame.text;
        }
    }
    for (Peer &peer : peers)
      for (std::span<std::byte> &into : peer.wanted)
        into = std::span(unwanted).first(into.size());
  }

  std::optional<uint32_t> awaited() const override {
    for (uint32_t k = 0; k < peers.size(); ++k)
      if (!peers[k].wanted.empty())
        return k;
    for (uint32_t k = 0; k < peers.size(); ++k)
      if (!peers[k].out.empty())
        return k;
    return std::nullopt;
  }

  void tell(uint32_t to, const Notice &notice) override {
    Frame frame;
    append(frame.text, std::as_bytes(std::span(notice.text)));
    frame.text.resize(std::min(frame.text.size(), longestText));
    frame.header = {uint32_t(notice.kind), 0, frame.text.size()};
    peers[to].out.push_back(std::move(frame));
    peers[to].out.back().body = peers[to].out.back().text;
    flush(to);
  }

  std::optional<Notice> heard() override {
    for (uint32_t k = 0; k < peers.size(); ++k)
      receive(k);
    if (notices.empty())
      return std::nullopt;
    Notice first = std::move(notices.front());
    notices.pop_front();
    return first;
  }

  void wait(std::chrono::microseconds most) override {
    if (most.count() == 0) {
      sched_yield();
      return;
    }
    std::vector<pollfd> all;
    for (const Peer &peer : peers)
      if (peer.socket.isOpen() && !(peer.isEarly() && peer.out.empty()))
        all.push_back({peer.socket.get(),
                       short((peer.isEarly() ? 0 : POLLIN) |
                             (peer.out.empty() ? 0 : POLLOUT)),
                       0});
    const timespec time{0, long(most.count()) * 1000};
    (void)ppoll(all.data(), all.size(), &time, nullptr);
  }

  void close(bool) override {
    for (Peer &peer : peers)
      peer.socket.close();
  }

private:
  void end(uint32_t k) {
    Peer &peer = peers[k];
    peer.socket.close();
    if (!std::exchange(peer.hasLeft, true))
      notices.push_back({Notice::Kind::Ended, k, ""});
  }

  /// Whether the socket can do no more now.
  bool isBlocked(uint32_t k, ssize_t done) {
    if (done > 0 || (done < 0 && errno == EINTR))
      return false;
    if (done == 0 || (errno != EAGAIN && errno != EWOULDBLOCK))
      end(k);
    return true;
  }

  void flush(uint32_t k) {
    Peer &peer = peers[k];
    while (!peer.out.empty() && peer.socket.isOpen()) {
      Frame &frame = peer.out.front();
      auto header = std::as_bytes(std::span(&frame.header, 1));
      const bool isHead = frame.done < header.size();
      auto left = isHead ? header.subspan(frame.done)
                         : frame.body.subspan(frame.done - header.size());
      if (!left.empty()) {
        const int more = isHead && !frame.body.empty() ? MSG_MORE : 0;
        const ssize_t done = ::send(peer.socket.get(), left.data(), left.size(),
                                    MSG_NOSIGNAL | MSG_DONTWAIT | more);
        if (isBlocked(k, done))
          return;
        frame.done += done > 0 ? size_t(done) : 0;
      }
      if (frame.done == header.size() + frame.body.size())
        peer.out.pop_front();
    }
  }

  /// Takes what has come, up to data that nobody wants yet.
  void receive(uint32_t k) {
    Peer &peer = peers[k];
    while (peer.socket.isOpen() && fault.empty()) {
      if (peer.hasHeader()) { // also one of no bytes is looked at first
        if (!checkHeader(k))
          return;
        if (peer.bodyBytes == peer.header.bytes) {
          finish(k);
          continue;
        }
      }
      const std::span<std::byte> into = target(peer);
      const ssize_t done =
          ::recv(peer.socket.get(), into.data(), into.size(), MSG_DONTWAIT);
      if (isBlocked(k, done))
        return;
      if (done > 0)
        (peer.hasHeader() ? peer.bodyBytes : peer.headerBytes) += size_t(done);
    }
  }

  /// Where the next bytes of a peer go.
  static std::span<std::byte> target(Peer &peer) {
    if (!peer.hasHeader())
      return std::as_writable_bytes(std::span(&peer.header, 1))
          .subspan(peer.headerBytes);
    auto body =
        peer.header.kind == data ? peer.wanted.front() : std::span(peer.text);
    return body.subspan(peer.bodyBytes);
  }

  /// False where nothing can be received now.
  bool checkHeader(uint32_t k) {
    Peer &peer = peers[k];
    if (peer.isEarly())
      return false;
    if (peer.header.kind != data) {
      if (peer.header.kind > uint32_t(Notice::Kind::Leave) ||
          peer.header.bytes > longestText)
        fault = fmt::format("rank {} sends what no rank would", k);
      else
        peer.text.resize(peer.header.bytes);
    } else if (peer.header.bytes != peer.wanted.front().size()) {
      fault = fmt::format("rank {} sends {} bytes, and rank {} receives {}", k,
                          peer.header.bytes, own, peer.wanted.front().size());
    }
    return fault.empty();
  }

  void finish(uint32_t k) {
    Peer &peer = peers[k];
    if (peer.header.kind == data) {
      peer.wanted.pop_front();
    } else {
      const auto kind = Notice::Kind(peer.header.kind);
      peer.hasLeft |= kind == Notice::Kind::Leave;
      notices.push_back(
          {kind, k,
           std::string(reinterpret_cast<const char *>(peer.text.data()),
                       peer.text.size())});
      peer.text.clear();
    }
    peer.headerBytes = peer.bodyBytes = 0;
  }

  const uint32_t own;
  std::vector<Peer> peers;
  std::deque<Notice> notices;
  Bytes unwanted;    ///< what was given up is received into it
  std::string fault; ///< two ranks disagree about a message
};

} // namespace

std::unique_ptr<Channel> makeTcpChannel(uint32_t rank,
                                        std::vector<TcpSocket> sockets) {
  return std::make_unique<TcpChannel>(rank, std::move(sockets));
}

} // namespace mgpu::device
