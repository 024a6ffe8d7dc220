// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TOOLS_LSP_PROXY_H
#define MGPU_TOOLS_LSP_PROXY_H

// Between an editor and MLIR's language server: what passes stays as it is,
// but for diagnostics, which those of `mgpu-tune check` join, and what is shown
// of an operation, which its document joins.

#include "tools/mgpu-lsp-server/CheckRun.h"

#include <chrono>
#include <map>
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

class Proxy {
public:
  /// `isDelimited` is MLIR's -lit-test.
  Proxy(int toServer, int fromServer, bool isDelimited)
      : editor(0, isDelimited), server(fromServer), serverFd(fromServer),
        toServer(toServer), isPretty(isDelimited) {}

  /// Until one of the two has gone.
  void run();

private:
  using Clock = std::chrono::steady_clock;
  struct Document {
    std::string text;
    nlohmann::json version;
    nlohmann::json ofServer = nlohmann::json::array();
    nlohmann::json ofCheck = nlohmann::json::array();
    std::optional<Clock::time_point> due; ///< when it is to be checked
  };

  void fromEditor(const nlohmann::json &message);
  void note(const nlohmann::json &message);
  void fromServer(nlohmann::json message);
  void passOn(nlohmann::json &message);
  void noteText(const std::string &method, const nlohmann::json &parameters);
  void noteHover(const nlohmann::json &message);
  void answerHover(nlohmann::json &message, const std::string &document);
  void publish(const std::string &uri, const Document &document);
  void startCheck();
  void endCheck();
  void endAllChecks();
  int millisecondsLeft() const;
  void toEditor(const nlohmann::json &message) {
    writeMessage(1, message, isPretty);
  }

  Reader editor, server;
  int serverFd, toServer;
  bool isPretty;
  nlohmann::json initializeId;
  std::map<std::string, Document> documents;
  std::map<nlohmann::json, std::string> hovers; ///< documents, by request
  std::optional<CheckRun> check;
  std::string checked; ///< the URI
  nlohmann::json checkedVersion;
  Clock::time_point checkEnds;
};

} // namespace mgpu::tools::lsp

#endif // MGPU_TOOLS_LSP_PROXY_H
