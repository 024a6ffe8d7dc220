// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TOOLS_LSP_MESSAGES_H
#define MGPU_TOOLS_LSP_MESSAGES_H

// Messages of the language server protocol, over a pipe.

#include <nlohmann/json.hpp>

#include <optional>
#include <string>

namespace mgpu::tools::lsp {

/// Reads a file descriptor, whole messages at a time.
class Reader {
public:
  /// `isDelimited`: lines "// -----" are between the messages, as MLIR's
  /// -lit-test has them; else a header says how long each is.
  explicit Reader(int fd, bool isDelimited = false)
      : fd(fd), isDelimited(isDelimited) {}

  /// Reads what is there, or waits for some. False at the end.
  bool fill();
  /// The next message that has come whole. Text that is no JSON is skipped.
  std::optional<nlohmann::json> next();

private:
  std::optional<std::string> nextText();

  int fd;
  bool isDelimited, isAtEnd = false;
  std::string pending;
};

/// Writes a message; false where nobody reads it. `isPretty` is what -lit-test
/// prints.
bool writeMessage(int fd, const nlohmann::json &message, bool isPretty = false);

} // namespace mgpu::tools::lsp

#endif // MGPU_TOOLS_LSP_MESSAGES_H
