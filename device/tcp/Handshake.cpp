// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/tcp/Handshake.h"

#include "device/tcp/Secret.h"

namespace mgpu::device {

namespace {

/// No rank has a higher number, nor is any port.
constexpr uint32_t mostNumber = 1 << 16;

template <typename T>
std::span<std::byte> bytesOf(T &value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

} // namespace

Digest proofOf(Side side, std::span<const std::byte> secret, const Hello &hello,
               const Nonce &nonce) {
  Bytes message;
  append(message, side);
  append(message, secret.empty()); // no key and one of zeros are alike to HMAC
  append(message, hello);
  append(message, nonce);
  return hmacSha256(secret, message);
}

Result<void> enter(TcpSocket &host, Hello hello,
                   std::span<const std::byte> secret,
                   TcpSocket::Deadline until) {
  MGPU_TRY(fillRandomly(hello.nonce));
  MGPU_TRY(host.sendAll(bytesOf(hello), until));
  Answer answer;
  MGPU_TRY(host.receiveAll(bytesOf(answer), until));
  if (!isSame(answer.proof, proofOf(Side::Host, secret, hello, answer.nonce)))
    return fail(ErrorKind::Absent,
                secret.empty()
                    ? "what listens there is no rank of mgpu, or one with a "
                      "secret, which MGPU_SECRET_FILE has to name here, too"
                    : "what listens there does not prove that it has the "
                      "secret of this rank's MGPU_SECRET_FILE");
  const Digest proof = proofOf(Side::Guest, secret, hello, answer.nonce);
  MGPU_TRY(host.sendAll(proof, until));
  std::byte word{};
  MGPU_TRY(host.receiveAll(bytesOf(word), until));
  if (word != welcomeByte)
    return fail(ErrorKind::Absent, "what listens there welcomes no rank");
  return {};
}

std::span<std::byte> Admission::room() {
  return (hasAnswered ? std::span<std::byte>(proof) : bytesOf(said))
      .subspan(taken);
}

Admission::Step Admission::took(size_t count) {
  taken += count;
  if (!room().empty())
    return Step::More;
  taken = 0;
  return hasAnswered ? judgeProof() : judgeHello();
}

/// A number that is wrong in the guest's job is told to it later, once it has
/// proven that it is no stranger.
Admission::Step Admission::judgeHello() {
  if (said.mark != helloMark || said.to != here->rank ||
      said.meeting != here->meeting || said.rank > mostNumber ||
      said.count > mostNumber || said.port >= mostNumber ||
      !fillRandomly(answer.nonce))
    return Step::Refuse;
  answer.proof = proofOf(Side::Host, here->secret, said, answer.nonce);
  hasAnswered = true;
  return Step::Reply;
}

Admission::Step Admission::judgeProof() {
  isWelcome =
      isSame(proof, proofOf(Side::Guest, here->secret, said, answer.nonce));
  return isWelcome ? Step::Welcome : Step::Refuse;
}

std::span<const std::byte> Admission::reply() const {
  if (isWelcome)
    return std::span(&welcomeByte, 1);
  return std::as_bytes(std::span(&answer, 1));
}

} // namespace mgpu::device
