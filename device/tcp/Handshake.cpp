// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/tcp/Handshake.h"

#include "support/Sha256.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

namespace mgpu::device {

namespace {

constexpr size_t leastBytes = 16;

struct File {
  int descriptor = -1;
  ~File() {
    if (descriptor >= 0)
      ::close(descriptor);
  }
};

tl::unexpected<Error> refuse(const std::string &path, const std::string &why) {
  return fail(ErrorKind::Invalid,
              fmt::format("the secret '{}' {}; `mgpu-tune secret FILE` makes "
                          "one, for you alone",
                          path, why));
}

/// "" or why it is no secret.
std::string faultOf(const struct stat &status) {
  if (!S_ISREG(status.st_mode))
    return "is not a file";
  if (status.st_uid != geteuid() && status.st_uid != 0)
    return fmt::format("belongs to user {}, who knows it", status.st_uid);
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    return fmt::format("has mode {:04o}, so that others can use it: `chmod "
                       "600` it if none has",
                       status.st_mode & 07777);
  return "";
}

} // namespace

Result<void> fillRandomly(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t done = ::getrandom(bytes.data(), bytes.size(), 0);
    if (done > 0)
      bytes = bytes.subspan(size_t(done));
    else if (errno != EINTR)
      return fail(ErrorKind::Absent,
                  fmt::format("the system gives no random numbers: {}",
                              std::strerror(errno)));
  }
  return {};
}

Result<void> makeSecret(const std::string &path) {
  std::array<std::byte, 32> secret;
  MGPU_TRY(fillRandomly(secret));
  const std::string text = toHex(secret) + "\n";
  const File file{::open(path.c_str(),
                         O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                         0600)};
  if (file.descriptor < 0 && errno == EEXIST)
    return fail(ErrorKind::Invalid,
                fmt::format("'{}' is there already, and ranks may use it: name "
                            "another file, or remove that one",
                            path));
  // A umask may have taken the owner's own rights.
  if (file.descriptor >= 0 && ::fchmod(file.descriptor, 0600) == 0 &&
      ::write(file.descriptor, text.data(), text.size()) ==
          ssize_t(text.size()) &&
      ::fsync(file.descriptor) == 0)
    return {};
  const int code = errno;
  if (file.descriptor >= 0)
    ::unlink(path.c_str());
  return fail(ErrorKind::Invalid,
              fmt::format("cannot write '{}': {}", path, std::strerror(code)));
}

Result<Bytes> readSecret(const std::string &path) {
  // A pipe would keep whoever opens it waiting.
  const File file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  struct stat status {};
  if (file.descriptor < 0 || ::fstat(file.descriptor, &status) != 0)
    return fail(ErrorKind::Usage,
                fmt::format("cannot open the secret '{}', which "
                            "MGPU_SECRET_FILE names: {}",
                            path, std::strerror(errno)));
  if (const std::string fault = faultOf(status); !fault.empty())
    return refuse(path, fault);
  std::string text(4096, '\0');
  const ssize_t size = ::read(file.descriptor, text.data(), text.size());
  text.resize(size_t(std::max<ssize_t>(size, 0)));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r'))
    text.pop_back();
  auto secret = fromHex(text);
  if (!secret || secret->size() < leastBytes)
    return refuse(path, fmt::format("is not a line of {} or more hexadecimal "
                                    "digits",
                                    2 * leastBytes));
  return std::move(*secret);
}

Result<Bytes> secretOfEnvironment() {
  const char *path = std::getenv("MGPU_SECRET_FILE");
  return path ? readSecret(path) : Result<Bytes>();
}

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
