// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/mgpu-tune/AskInProcess.h"

#include "support/ChildProcess.h"

#include <fmt/format.h>

namespace mgpu::tune {

Result<std::string>
askInProcess(const std::function<Result<std::string>()> &question) {
  auto handler = [&](std::span<const std::byte>) -> Outcome<Bytes> {
    Result<std::string> found = question();
    const std::string &text = found ? *found : found.error().message;
    Bytes answer{std::byte(found ? 0 : 1 + uint8_t(found.error().kind))};
    for (char c : text)
      answer.push_back(std::byte(c));
    return answer;
  };
  MGPU_TRY_ASSIGN(ChildProcess worker, ChildProcess::start(handler));
  constexpr double seconds = 60;
  auto answer = worker.ask({}, seconds);
  if (!answer)
    return fail(ErrorKind::Absent,
                fmt::format("asking the NVIDIA driver for its cards: the "
                            "process {}",
                            answer.error().what));
  auto code = uint8_t(answer->at(0));
  std::string text(reinterpret_cast<const char *>(answer->data()) + 1,
                   answer->size() - 1);
  if (code)
    return fail(ErrorKind(code - 1), text);
  return text;
}

} // namespace mgpu::tune
