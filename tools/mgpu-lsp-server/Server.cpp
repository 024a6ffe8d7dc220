// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Completion, hover and diagnostics in editors for programs in our dialects and
// StableHLO. MLIR's language server does the work, in a process of its own, and
// `mgpu-tune check` finds what only the whole program shows.
#include "tools/mgpu-lsp-server/Server.h"

#include "tools/mgpu-lsp-server/CheckRun.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <map>
#include <optional>
#include <poll.h>
#include <string>
#include <string_view>
#include <sys/wait.h>
#include <unistd.h>

namespace mgpu::tools::lsp {

using nlohmann::json;
using namespace std::chrono_literals;

namespace {

// Between an editor and MLIR's language server: what passes stays as it is,
// but for diagnostics, which those of `mgpu-tune check` join, and what is shown
// of an operation, which its document joins.

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
bool writeMessage(int fd, const json &message, bool isPretty = false) {
  std::string text = message.dump(isPretty ? 2 : -1, ' ', false,
                                  json::error_handler_t::replace);
  text = "Content-Length: " + std::to_string(text.size()) + "\r\n\r\n" + text;
  if (isPretty)
    text += "\r\n";
  for (size_t done = 0; done < text.size();) {
    const ssize_t count = ::write(fd, text.data() + done, text.size() - done);
    if (count < 0 && errno != EINTR)
      return false;
    done += size_t(std::max<ssize_t>(count, 0));
  }
  return true;
}

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

// A walk over a message calls itself for each level of it.
constexpr int deepest = 200;
// A text of that length was not meant, and would be waited for.
constexpr size_t longestMessage = size_t(1) << 30;

bool Reader::fill() {
  char bytes[65536];
  ssize_t count;
  do
    count = ::read(fd, bytes, sizeof bytes);
  while (count < 0 && errno == EINTR);
  isAtEnd = count <= 0;
  if (!isAtEnd)
    pending.append(bytes, size_t(count));
  return !isAtEnd;
}

std::optional<std::string> Reader::nextText() {
  if (isDelimited) {
    const size_t end = pending.find("// -----");
    if (end == std::string::npos && (!isAtEnd || pending.empty()))
      return std::nullopt;
    std::string text = pending.substr(0, end);
    const size_t line = pending.find('\n', end);
    pending.erase(0, line == std::string::npos ? line : line + 1);
    // Comments are FileCheck's.
    std::string message;
    for (size_t at = 0; at < text.size();) {
      const size_t next = std::min(text.find('\n', at), text.size());
      if (text.compare(at, 2, "//") != 0)
        message += text.substr(at, next - at) + "\n";
      at = next + 1;
    }
    return message;
  }
  const size_t header = pending.find("\r\n\r\n");
  if (header == std::string::npos)
    return std::nullopt;
  const std::string_view name = "Content-Length:";
  const size_t at = pending.find(name);
  const size_t length =
      at < header
          ? std::strtoull(pending.c_str() + at + name.size(), nullptr, 10)
          : 0;
  if (length > longestMessage) {
    pending.erase(0, header + 4);
    return std::string(); // which is no message
  }
  if (pending.size() - header - 4 < length)
    return std::nullopt;
  std::string text = pending.substr(header + 4, length);
  pending.erase(0, header + 4 + length);
  return text;
}

std::optional<json> Reader::next() {
  while (auto text = nextText()) {
    bool isDeep = false;
    auto look = [&](int depth, json::parse_event_t, json &) {
      isDeep |= depth > deepest;
      return !isDeep;
    };
    json message = json::parse(*text, look, /*allow_exceptions=*/false);
    if (message.is_object() && !isDeep)
      return message;
  }
  return std::nullopt;
}

// docs/generated, as string literals.
static constexpr std::string_view documents[] = {
#include "tools/mgpu-lsp-server/MgpuDialect.inc"
    ,
#include "tools/mgpu-lsp-server/MpmdDialect.inc"
    ,
#include "tools/mgpu-lsp-server/SpmdDialect.inc"
};

/// A section begins with "### `mgpu.alloc` (...)" and ends at the next one.
static std::map<std::string, std::string> sectionsOf(std::string_view text) {
  std::map<std::string, std::string> sections;
  constexpr std::string_view mark = "\n### `";
  for (size_t at = text.find(mark); at != std::string_view::npos;) {
    const size_t name = at + mark.size(), nameEnd = text.find('`', name);
    const size_t body = text.find('\n', name);
    at = text.find(mark, name);
    const size_t end = std::min({at, text.find("\n## ", name), text.size()});
    if (nameEnd < body && body < end) {
      const std::string key(text.substr(name, nameEnd - name));
      sections[key] =
          "### " + key + "\n" + std::string(text.substr(body, end - body));
    }
  }
  return sections;
}

/// The section of the dialects' documents on an operation ("mgpu.all_reduce"),
/// as Markdown; empty where they have none of that name.
static std::string documentOf(const std::string &operation) {
  static const auto sections = [] {
    std::map<std::string, std::string> all;
    for (std::string_view document : documents)
      all.merge(sectionsOf(document));
    return all;
  }();
  auto at = sections.find(operation);
  return at == sections.end() ? "" : at->second;
}

/// The name with dots in it at a place of a text (LSP's line and character);
/// empty where there is none.
static std::string nameAt(std::string_view text, size_t line,
                          size_t character) {
  for (; line > 0; --line) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos)
      return "";
    text.remove_prefix(end + 1);
  }
  text = text.substr(0, text.find('\n'));
  auto isName = [&](size_t at) {
    const auto c = static_cast<unsigned char>(text[at]);
    return std::isalnum(c) || c == '_' || c == '.';
  };
  if (character >= text.size() || !isName(character))
    return "";
  size_t first = character, last = character;
  while (first > 0 && isName(first - 1))
    --first;
  while (last + 1 < text.size() && isName(last + 1))
    ++last;
  return std::string(text.substr(first, last - first + 1));
}

// Somebody who types is not interrupted; a check that takes longer is given up.
constexpr std::chrono::milliseconds pause = 300ms, longest = 20s;

static std::string uriIn(const json &parameters) {
  return parameters.value("/textDocument/uri"_json_pointer, "");
}

void Proxy::noteText(const std::string &method, const json &parameters) {
  const std::string uri = uriIn(parameters);
  const json version =
      parameters.value("/textDocument/version"_json_pointer, json());
  if (method == "textDocument/didOpen") {
    Document &document = documents[uri];
    document.text = parameters.value("/textDocument/text"_json_pointer, "");
    document.version = version;
    document.due = Clock::now();
  } else if (method == "textDocument/didClose") {
    documents.erase(uri);
  } else if (auto at = documents.find(uri); at != documents.end()) {
    // Whole texts, as the answer to `initialize` asks for.
    for (const json &change : parameters.value("contentChanges", json::array()))
      at->second.text = change.value("text", "");
    if (!version.is_null())
      at->second.version = version;
    at->second.due = Clock::now() + pause;
  }
}

void Proxy::noteHover(const json &message) {
  const json &parameters = message.at("params");
  auto at = documents.find(uriIn(parameters));
  if (at == documents.end() || !message.contains("id"))
    return;
  auto place = [&](const char *what) {
    const json &number = parameters.at("position").at(what);
    return number.is_number_unsigned() ? number.get<size_t>() : 0;
  };
  const std::string name =
      nameAt(at->second.text, place("line"), place("character"));
  if (std::string document = documentOf(name); !document.empty())
    hovers[message["id"]] = std::move(document);
}

/// Whether it is a request, a notification or an answer. MLIR's server ends at
/// other messages.
static bool isMessage(const json &message) {
  const auto version = message.find("jsonrpc"), method = message.find("method");
  if (version == message.end() || *version != "2.0")
    return false;
  return method == message.end() ? message.contains("id") : method->is_string();
}

/// Reading fields that are of other types than the protocol's throws; the
/// message goes on to the server, which answers.
void Proxy::fromEditor(const json &message) {
  if (!isMessage(message)) {
    const auto id = message.find("id");
    return toEditor({{"jsonrpc", "2.0"},
                     {"id", id == message.end() ? json() : *id},
                     {"error",
                      {{"code", -32600},
                       {"message", "this is no message of JSON-RPC 2.0"}}}});
  }
  try {
    note(message);
  } catch (const std::exception &) {
  }
  writeMessage(toServer, message);
}

void Proxy::note(const json &message) {
  const std::string method = message.value("method", "");
  const json parameters = message.value("params", json::object());
  if (method == "initialize")
    initializeId = message.value("id", json());
  else if (method == "textDocument/hover")
    noteHover(message);
  else if (method == "textDocument/didOpen" ||
           method == "textDocument/didChange" ||
           method == "textDocument/didSave" ||
           method == "textDocument/didClose")
    noteText(method, parameters);
  else if (method == "shutdown")
    endAllChecks();
}

void Proxy::answerHover(json &message, const std::string &document) {
  json &result = message["result"];
  if (!result.is_object())
    result = json::object();
  const std::string before =
      result.value("/contents/value"_json_pointer, std::string());
  result["contents"] = {
      {"kind", "markdown"},
      {"value", before.empty() ? document : document + "\n***\n" + before}};
}

void Proxy::fromServer(json message) {
  try {
    passOn(message);
  } catch (const std::exception &) { // an answer to an odd message
    toEditor(message);
  }
}

void Proxy::passOn(json &message) {
  const json id = message.value("id", json());
  if (message.value("method", "") == "textDocument/publishDiagnostics") {
    const std::string uri = message["params"].value("uri", "");
    auto at = documents.find(uri);
    if (at == documents.end())
      return toEditor(message);
    at->second.ofServer = message["params"].value("diagnostics", json::array());
    return publish(uri, at->second);
  }
  if (!id.is_null() && id == initializeId && message.contains("result")) {
    json &result = message["result"];
    if (result["capabilities"]["textDocumentSync"].is_object())
      result["capabilities"]["textDocumentSync"]["change"] = 1; // whole texts
    result["serverInfo"]["name"] = "mgpu-lsp-server";
  }
  if (auto at = hovers.find(id); at != hovers.end()) {
    answerHover(message, at->second);
    hovers.erase(at);
  }
  toEditor(message);
}

/// `check` reads no further than the parser, whose errors the server has too.
void Proxy::publish(const std::string &uri, const Document &document) {
  json all = document.ofServer;
  if (std::ranges::none_of(
          all, [](const json &each) { return each.value("severity", 1) == 1; }))
    all.insert(all.end(), document.ofCheck.begin(), document.ofCheck.end());
  json parameters{{"uri", uri}, {"diagnostics", std::move(all)}};
  if (!document.version.is_null())
    parameters["version"] = document.version;
  toEditor({{"jsonrpc", "2.0"},
            {"method", "textDocument/publishDiagnostics"},
            {"params", std::move(parameters)}});
}

void Proxy::startCheck() {
  for (auto &[uri, document] : documents) {
    if (check || !document.due || *document.due > Clock::now())
      continue;
    document.due.reset();
    if (auto started = CheckRun::start(uri, document.text))
      check.emplace(std::move(*started));
    checked = uri;
    checkedVersion = document.version;
    checkEnds = Clock::now() + longest;
  }
}

void Proxy::endCheck() {
  auto at = documents.find(checked);
  if (at != documents.end() && at->second.version == checkedVersion)
    try {
      at->second.ofCheck = check->diagnostics();
      publish(checked, at->second);
    } catch (const std::exception &) { // the check ended within its words
    }
  check.reset();
}

void Proxy::endAllChecks() {
  for (auto &[uri, document] : documents)
    if (document.due)
      document.due = Clock::now();
  for (startCheck(); check; startCheck()) {
    while (check->fill())
      ;
    endCheck();
  }
}

/// Until something is due; -1: nothing is.
int Proxy::millisecondsLeft() const {
  std::optional<Clock::time_point> first;
  if (check)
    first = checkEnds;
  else
    for (const auto &[uri, document] : documents)
      if (document.due && (!first || *document.due < *first))
        first = document.due;
  if (!first)
    return -1;
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(*first - Clock::now());
  return int(std::max<int64_t>(left.count(), 0));
}

void Proxy::run() {
  for (;;) {
    startCheck();
    pollfd ready[] = {{0, POLLIN, 0},
                      {serverFd, POLLIN, 0},
                      {check ? check->fd() : -1, POLLIN, 0}};
    if (::poll(ready, 3, millisecondsLeft()) < 0 && errno != EINTR)
      return;
    if (check &&
        (ready[2].revents ? !check->fill() : Clock::now() >= checkEnds))
      endCheck();
    if (ready[1].revents) {
      const bool isOpen = server.fill();
      while (auto message = server.next())
        fromServer(std::move(*message));
      if (!isOpen)
        return;
    }
    if (ready[0].revents) {
      const bool isOpen = editor.fill();
      while (auto message = editor.next())
        fromEditor(*message);
      if (!isOpen) {
        // The server ends when it has answered what was asked.
        ::close(toServer);
        while (server.fill())
          ;
        while (auto message = server.next())
          fromServer(std::move(*message));
        return;
      }
    }
  }
}

} // namespace

int runServer(int argc, char **argv, mlir::DialectRegistry &dialects) {
  auto serve = [&](int count, char **words) {
    return mlir::failed(mlir::MlirLspServerMain(count, words, dialects));
  };
  // -lit-test is of tests: messages are delimited, and the answers pretty.
  bool isTest = false;
  std::vector<char *> others;
  for (int k = 0; k < argc; ++k) {
    const std::string word = argv[k];
    if (word == "-lit-test" || word == "--lit-test")
      isTest = true;
    else
      others.push_back(argv[k]);
    if (word == "--help" || word == "--version")
      return serve(argc, argv);
  }
  int questions[2], answers[2];
  if (::pipe2(questions, O_CLOEXEC) != 0 || ::pipe2(answers, O_CLOEXEC) != 0) {
    std::perror("mgpu-lsp-server");
    return 4;
  }
  std::signal(SIGPIPE, SIG_IGN);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(questions[0], 0);
    ::dup2(answers[1], 1);
    for (int fd : {questions[0], questions[1], answers[0], answers[1]})
      ::close(fd);
    return serve(int(others.size()), others.data());
  }
  ::close(questions[0]);
  ::close(answers[1]);
  if (child < 0) {
    std::perror("mgpu-lsp-server");
    return 4;
  }
  Proxy(questions[1], answers[0], isTest).run();
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 4;
}

} // namespace mgpu::tools::lsp
