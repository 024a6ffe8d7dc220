// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_C_CALLS_H
#define MGPU_PIPELINE_C_CALLS_H

// Helpers that all calls of the C interface share. No exception leaves one, and
// every failure is a status and a sentence.

#include "pipeline/c/mgt.h"
#include "support/Result.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <fmt/format.h>
#include <new>
#include <string>
#include <string_view>
#include <vector>

namespace mgpu::pipeline {

/// The words of a list, "x,y".
inline std::vector<std::string> wordsOf(std::string_view list) {
  std::vector<std::string> words;
  for (size_t at = 0, end; at < list.size(); at = end + 1) {
    end = std::min(list.find(',', at), list.size());
    words.emplace_back(list.substr(at, end - at));
  }
  return words;
}

/// The text of mgt_error() for this thread.
std::string &lastError();

/// Runs `call`, which returns a Result<void>. The sentence of a failure goes to
/// the thread's, and to the handle's `own` if that is not null.
template <typename Call>
mgt_status guarded(std::string *own, Call call) {
  auto failed = [own](const Error &error) {
    lastError() = error.message;
    if (own)
      *own = error.message;
    return mgt_status(error.kind);
  };
  try {
    Result<void> done = call();
    return done ? MGT_OK : failed(done.error());
  } catch (const std::bad_alloc &) {
    lastError().assign("out of memory"); // within what a string holds by itself
    if (own)
      own->assign("out of memory");
    return MGT_ABSENT;
  } catch (const std::exception &error) {
    return failed({ErrorKind::Internal, error.what()});
  }
}

/// The bytes of a struct up to and with a member: what the first version had.
#define MGPU_SIZE_UP_TO(Struct, member)                                        \
  (offsetof(Struct, member) + sizeof(Struct::member))

/// Reads a struct of a caller, who may have been compiled against another
/// header. All versions had the first `least` bytes.
template <typename Struct>
Result<Struct> sized(const Struct *given, const char *call, const char *name,
                     size_t least = sizeof(Struct)) {
  Struct out{};
  if (given->size < least || given->size > 4096)
    return fail(ErrorKind::Usage,
                fmt::format("{}: its {}.size is {}: set it to sizeof({})", call,
                            name, given->size, name));
  std::memcpy(&out, given, std::min(given->size, sizeof out));
  const auto *bytes = reinterpret_cast<const unsigned char *>(given);
  if (std::any_of(bytes + std::min(given->size, sizeof out),
                  bytes + given->size, [](unsigned char b) { return b; }))
    return fail(ErrorKind::Unsupported,
                fmt::format("{}: its struct has a member that this version of "
                            "libmgt does not know: use a newer one",
                            call));
  return out;
}

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_C_CALLS_H
