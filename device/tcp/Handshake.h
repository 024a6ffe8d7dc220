// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_TCP_HANDSHAKE_H
#define MGPU_DEVICE_TCP_HANDSHAKE_H

// How two ranks prove to each other that they have the same secret, before
// either reads anything else of the other's. The one that connects is the
// guest, the other the host:
//
//   guest: Hello, with a number that it has drawn
//   host:  Answer, with a number of its own and the digest of both
//   guest: another digest of both
//   host:  one byte, "welcome"
//
// The secret is the key of the digests and is never sent. Numbers are new for
// each connection, so nothing that was heard before is of use, and the digests
// of the two sides differ, so none can be sent back. All is of fixed size.

#include "device/tcp/TcpSocket.h"
#include "support/Bytes.h"
#include "support/Result.h"
#include "support/Sha256.h"

namespace mgpu::device {

// The secret that the ranks of a job know and a stranger does not: a line of
// hexadecimal digits in a file that its owner alone can read.

/// Random bytes of the system's. Absent where it gives none.
Result<void> fillRandomly(std::span<std::byte> bytes);

/// Writes a new secret of 256 bits to `path`, mode 0600. Invalid where there is
/// something at `path`, which stays as it is, or no file can be made.
Result<void> makeSecret(const std::string &path);

/// The secret in `path`. Invalid where the file belongs to another user, others
/// can read or change it, or it holds anything but 128 bits or more in
/// hexadecimal digits; Usage where there is no such file.
Result<Bytes> readSecret(const std::string &path);

/// That of MGPU_SECRET_FILE; empty where the variable is not set.
Result<Bytes> secretOfEnvironment();

using Nonce = std::array<std::byte, 32>;

constexpr uint64_t helloMark = 0x32767275706d676d; ///< "mgmpurv2"
constexpr std::byte welcomeByte{0x57};

/// The guest's first message. The numbers of one meeting differ from those of
/// another, so ranks of two jobs with one secret do not mix.
struct Hello {
  uint64_t mark = helloMark;
  uint32_t rank = 0, count = 0; ///< the guest's, and how many it knows of
  uint32_t to = 0;              ///< whom it wants to meet
  uint32_t port = 0;            ///< where it listens
  Nonce nonce{};
  Nonce meeting{}; ///< zeros where rank 0 is the host
};
static_assert(sizeof(Hello) == 88 && std::is_trivially_copyable_v<Hello>);

struct Answer {
  Nonce nonce{};
  Digest proof{};
};
static_assert(sizeof(Answer) == 64);

/// A host's identity, and what it asks of its guests.
struct Membership {
  uint32_t rank = 0;
  Nonce meeting{};
  Bytes secret; ///< empty: there is none
};

enum class Side : uint8_t { Guest = 1, Host = 2 };
/// The proof of a side that it has the secret; `nonce` is the host's.
Digest proofOf(Side side, std::span<const std::byte> secret, const Hello &hello,
               const Nonce &nonce);

/// The guest's side of a connection; draws the nonce of `hello`. Absent where
/// the host does not prove that it has the secret, or is late.
Result<void> enter(TcpSocket &host, Hello hello,
                   std::span<const std::byte> secret,
                   TcpSocket::Deadline until);

/// The host's side of one connection: it is told what came, and says what to
/// do. Whatever comes, it needs no more than its own size.
class Admission {
public:
  enum class Step : uint8_t {
    More,    ///< read on
    Reply,   ///< send reply(), and read on
    Welcome, ///< the guest is hello().rank; send reply()
    Refuse,  ///< a stranger
  };

  /// `here` must outlive it.
  explicit Admission(const Membership &here) : here(&here) {}
  /// Where the next bytes go; never empty before Welcome or Refuse.
  std::span<std::byte> room();
  /// Once `count` bytes more are there.
  Step took(size_t count);
  std::span<const std::byte> reply() const;
  const Hello &hello() const { return said; }

private:
  Step judgeHello();
  Step judgeProof();

  const Membership *here;
  Hello said;
  Answer answer;
  Digest proof{};
  size_t taken = 0; ///< of the hello, or of the proof
  bool hasAnswered = false, isWelcome = false;
};

} // namespace mgpu::device

#endif // MGPU_DEVICE_TCP_HANDSHAKE_H
