// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_API_MESSAGERENDEZVOUS_H
#define MGPU_DEVICE_API_MESSAGERENDEZVOUS_H

// The rendezvous of ranks that share no memory: everything is messages of a
// Channel. Once one rank fails, every rank's calls fail: each tells all the
// others, and waits a while to hear them, so that one that says nothing is
// named by all.

#include "device/api/Channel.h"
#include "support/Bytes.h"
#include "support/Result.h"

#include <memory>
#include <mutex>

namespace mgpu::device {

/// How one rank of a program meets the others, wherever they are: threads or
/// processes of one machine (capture/ranks/RankMemory.h), or processes of
/// several (MessageRendezvous). All ranks call meet(), largest() and exchange()
/// in the same order, each from one thread at a time. No wait is longer than
/// the deadline that the rendezvous was made with.
class Rendezvous {
public:
  virtual ~Rendezvous() = default;

  virtual uint32_t rank() const = 0;  ///< from 0 on
  virtual uint32_t count() const = 0; ///< of ranks, at least 1

  /// Gives a sign of life. An error once abort() was called for any rank.
  virtual Result<void> watch() = 0;
  /// Returns once all ranks called it. Errors: as watch(); one that names the
  /// rank that did not come in time.
  virtual Result<void> meet() = 0;
  /// The largest value that a rank gave. Errors: as meet().
  virtual Result<double> largest(double mine) = 0;
  /// The bytes that each rank gave, by rank. Errors: as meet(); Internal if
  /// `mine` is more than there is room for.
  virtual Result<std::vector<Bytes>>
  exchange(std::span<const std::byte> mine) = 0;
  /// Makes every wait of all ranks end with an error. `reason` is told to them
  /// where there are means to.
  virtual void abort(const std::string &reason = "") = 0;
};

/// Facts that all ranks must have alike, by their names in errors.
using Facts = std::vector<std::pair<std::string, std::string>>;

/// All ranks call it with facts of the same names in the same order. Absent,
/// with the same words on all ranks, where one has another fact than rank 0.
/// Errors: as Rendezvous::exchange().
Result<void> agree(const Facts &facts, Rendezvous &others);

class MessageRendezvous final : public Rendezvous {
public:
  /// `deadline`: the longest wait for another rank; 0: no limit. `grace`: how
  /// long the others may take to say why they gave up.
  MessageRendezvous(std::unique_ptr<Channel> channel,
                    std::chrono::milliseconds deadline,
                    std::chrono::milliseconds grace = std::chrono::seconds(2));
  /// leave().
  ~MessageRendezvous() override;

  uint32_t rank() const override { return channel->rank(); }
  uint32_t count() const override { return channel->count(); }
  std::string library() const { return channel->library(); }
  /// All ranks call it, each with the name of its machine. Errors: as meet().
  Result<void> tellNode(const std::string &name);
  /// The machine of each rank, numbered in the order of the ranks; before
  /// tellNode() all are on one.
  const std::vector<uint32_t> &nodeOf() const { return nodes; }
  /// The ranks, those of one machine beside each other; rank 0 is first.
  std::vector<uint32_t> ranksByNode() const;
  Result<void> watch() override;
  Result<void> meet() override;
  Result<double> largest(double mine) override;
  Result<std::vector<Bytes>> exchange(std::span<const std::byte> mine) override;
  void abort(const std::string &reason) override;
  /// Tells the others of an error of this rank's, and waits for their words as
  /// meet() does when a rank is late. Gives the error, with the ranks that say
  /// nothing; as it is where a rank has failed before.
  Error giveUp(Error error);

  /// Sends and receives all of them at once; returns when all are done. `what`
  /// is for errors: what the ranks wait for each other in. From any thread.
  /// Errors: Absent where a rank is late, gone or has failed, or the lengths of
  /// the two ends differ.
  Result<void> transfer(std::span<const Outgoing> sends,
                        std::span<const Incoming> recvs,
                        const std::string &what);

  /// Tells the others that this rank ends, and waits for them to do so, no
  /// longer than the deadline, or `grace` once a rank has failed. A process may
  /// be killed once another one has ended badly, so a rank says what it has to
  /// say before it calls this. Nothing may be called afterwards.
  void leave();

private:
  Result<void> run(const std::string &what, uint64_t bytes);
  std::string lateness(const std::string &what) const;
  /// Looks at what the others told; an error where one has failed.
  Result<void> listen();
  enum class Silent : uint8_t { Named, Unnamed };
  /// `silence`: whether the error names the ranks of which nothing is heard,
  /// which may be why there is one.
  tl::unexpected<Error> lose(ErrorKind kind, std::string text, ErrorCause cause,
                             Silent silence = Silent::Named);
  void note(const Notice &notice);
  tl::unexpected<Error> loseTo(uint32_t rank);
  void tellAll(const Notice &notice);
  /// Waits until all ranks have said something, no longer than `most`.
  void awaitWords(std::vector<bool> &said, std::chrono::milliseconds most);

  const std::unique_ptr<Channel> channel;
  const std::chrono::milliseconds deadline, grace;
  std::vector<uint32_t> nodes;
  std::mutex mutex;
  std::vector<bool> heard;   ///< by rank: it told something, or is gone
  std::vector<bool> left;    ///< by rank: it is done, or is gone
  std::vector<bool> gone;    ///< by rank: it ended without a word
  std::optional<Error> lost; ///< why no further call is possible
  bool hasTold = false, isOver = false;
};

} // namespace mgpu::device

#endif // MGPU_DEVICE_API_MESSAGERENDEZVOUS_H
