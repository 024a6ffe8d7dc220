// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The text form of a plan's certificates, one claim per line:
//
//   mgpu-certificate 4
//   phases 1                     those of the plan that have nodes, in order
//   phase replay                 the first
//   nodes 2
//   bound 12.5 by node 1         or: by set 0 head 2.5 tail 4; or, of device 0:
//                                by memory 0 small 64 head 2.5 tail 4; or, of
//                                three branches: by search 3, and then
//   order 0 1                    node 0 first, down to the leaf that fits, then
//   leaf                         node 1 first
//   leaf
//   head 0                       of node 0: needs no reason
//   head 10 after 0              behind node 0
//   tail 2.5 before 1            of node 0: node 1 follows
//   tail 0
//   end
//
// A head `work 1 from 4` is 4 and the work on resource 1 of the node's
// ancestors whose heads are at least 4; a tail likewise, of descendants.
// Numbers are the shortest text that reads back to the same double.

#include "planner/certificate/Certificate.h"
#include "support/LineText.h"

#include <fmt/format.h>

namespace mgpu::planner {

static constexpr uint32_t version = 4;

static void writeClaims(std::string &out, std::string_view name,
                        std::string_view path,
                        const std::vector<Claim> &claims) {
  for (const Claim &claim : claims) {
    out += fmt::format("{} {}", name, numberText(claim.us));
    if (auto *by = std::get_if<PathReason>(&claim.reason))
      out += fmt::format(" {} {}", path, by->node);
    else if (auto *work = std::get_if<WorkReason>(&claim.reason))
      out += fmt::format(" work {} from {}", work->resource,
                         numberText(work->from));
    out += '\n';
  }
}

static void write(std::string &out, const Certificate &certificate) {
  out += fmt::format("phase {}\nnodes {}\nbound {} by ",
                     toString(certificate.phase), certificate.heads.size(),
                     numberText(certificate.boundUs));
  if (auto *node = std::get_if<NodeArgument>(&certificate.argument)) {
    out += fmt::format("node {}\n", node->node);
  } else if (auto *search =
                 std::get_if<SearchArgument>(&certificate.argument)) {
    out += fmt::format("search {}\n", search->branches.size());
    for (const Branch &branch : search->branches)
      out += branch.first == branch.second
                 ? "leaf\n"
                 : fmt::format("order {} {}\n", branch.first, branch.second);
  } else if (auto *memory =
                 std::get_if<MemoryArgument>(&certificate.argument)) {
    out += fmt::format("memory {} small {} head {} tail {}\n", memory->device,
                       memory->small, numberText(memory->head),
                       numberText(memory->tail));
  } else {
    const auto &set = std::get<SetArgument>(certificate.argument);
    out += fmt::format("set {} head {} tail {}\n", set.resource,
                       numberText(set.head), numberText(set.tail));
  }
  writeClaims(out, "head", "after", certificate.heads);
  writeClaims(out, "tail", "before", certificate.tails);
}

std::string toText(std::span<const Certificate> certificates) {
  std::string out = fmt::format("mgpu-certificate {}\nphases {}\n", version,
                                certificates.size());
  for (const Certificate &certificate : certificates)
    write(out, certificate);
  return out + "end\n";
}

namespace {

class CertificateParser {
public:
  explicit CertificateParser(std::string_view text)
      : lines("certificate", text) {}

  Result<std::vector<Certificate>> run() {
    MGPU_TRY(lines.title("mgpu-certificate", version,
                         "mgpu-tune plan PROGRAM -o FILE --certificate FILE"));
    MGPU_TRY_ASSIGN(const uint32_t phases, count("phases"));
    std::vector<Certificate> certificates;
    for (uint32_t k = 0; k < phases; ++k) {
      certificate = {};
      MGPU_TRY(parsePhase());
      MGPU_TRY_ASSIGN(const uint32_t nodes, count("nodes"));
      MGPU_TRY(parseBound());
      MGPU_TRY(parseClaims(nodes, "head", "after", certificate.heads));
      MGPU_TRY(parseClaims(nodes, "tail", "before", certificate.tails));
      certificates.push_back(std::move(certificate));
    }
    LineReader end = lines.next();
    MGPU_TRY(end.keyword("end"));
    MGPU_TRY(end.expectEnd());
    if (LineReader line = lines.next(); !line.atEnd())
      return line.bad("text after \"end\"");
    return certificates;
  }

private:
  Result<uint32_t> count(std::string_view what) {
    LineReader line = lines.next();
    MGPU_TRY(line.keyword(what));
    MGPU_TRY_ASSIGN(uint32_t number, line.integer<uint32_t>(what));
    MGPU_TRY(line.expectEnd());
    return number;
  }
  Result<void> parsePhase() {
    LineReader line = lines.next();
    MGPU_TRY(line.keyword("phase"));
    const std::string_view name = line.word();
    for (Phase phase : allPhases)
      if (name == toString(phase)) {
        certificate.phase = phase;
        return line.expectEnd();
      }
    return line.bad(fmt::format("\"{}\" is no phase; write load, prologue, "
                                "replay, epilogue or fetch",
                                name.substr(0, 40)));
  }
  Result<void> parseBound() {
    LineReader line = lines.next();
    MGPU_TRY(line.keyword("bound"));
    MGPU_TRY_ASSIGN(certificate.boundUs, line.number("bound"));
    MGPU_TRY(line.keyword("by"));
    if (line.peek() == "node") {
      NodeArgument argument;
      (void)line.word();
      MGPU_TRY_ASSIGN(argument.node, line.integer<uint32_t>("node number"));
      certificate.argument = argument;
      return line.expectEnd();
    }
    if (line.peek() == "search") {
      (void)line.word();
      MGPU_TRY_ASSIGN(const uint32_t branches,
                      line.integer<uint32_t>("number of branches"));
      MGPU_TRY(line.expectEnd());
      return parseBranches(branches);
    }
    if (line.peek() == "memory") {
      MemoryArgument argument;
      (void)line.word();
      MGPU_TRY_ASSIGN(argument.device, line.integer<uint32_t>("device"));
      MGPU_TRY(line.keyword("small"));
      MGPU_TRY_ASSIGN(argument.small, line.integer<uint64_t>("byte count"));
      MGPU_TRY(parseHeadAndTail(line, argument.head, argument.tail));
      certificate.argument = argument;
      return {};
    }
    SetArgument argument;
    MGPU_TRY(line.keyword("set"));
    MGPU_TRY_ASSIGN(argument.resource, line.integer<uint32_t>("resource"));
    MGPU_TRY(parseHeadAndTail(line, argument.head, argument.tail));
    certificate.argument = argument;
    return {};
  }

  static Result<void> parseHeadAndTail(LineReader &line, double &head,
                                       double &tail) {
    MGPU_TRY(line.keyword("head"));
    MGPU_TRY_ASSIGN(head, line.number("head"));
    MGPU_TRY(line.keyword("tail"));
    MGPU_TRY_ASSIGN(tail, line.number("tail"));
    return line.expectEnd();
  }

  Result<void> parseBranches(uint32_t branches) {
    SearchArgument search;
    for (uint32_t k = 0; k < branches; ++k) {
      LineReader line = lines.next();
      Branch branch;
      if (line.peek() == "leaf") {
        (void)line.word();
      } else {
        MGPU_TRY(line.keyword("order"));
        MGPU_TRY_ASSIGN(branch.first, line.integer<uint32_t>("node number"));
        MGPU_TRY_ASSIGN(branch.second, line.integer<uint32_t>("node number"));
        if (branch.first == branch.second)
          return line.bad("a node has no order with itself");
      }
      MGPU_TRY(line.expectEnd());
      search.branches.push_back(branch);
    }
    certificate.argument = std::move(search);
    return {};
  }

  Result<void> parseClaims(uint32_t nodes, std::string_view name,
                           std::string_view path, std::vector<Claim> &claims) {
    for (uint32_t i = 0; i < nodes; ++i) {
      LineReader line = lines.next();
      Claim claim;
      MGPU_TRY(line.keyword(name));
      MGPU_TRY_ASSIGN(claim.us, line.number(name));
      if (line.peek() == path) {
        PathReason reason;
        (void)line.word();
        MGPU_TRY_ASSIGN(reason.node, line.integer<uint32_t>("node number"));
        claim.reason = reason;
      } else if (!line.atEnd()) {
        WorkReason reason;
        MGPU_TRY(line.keyword("work"));
        MGPU_TRY_ASSIGN(reason.resource, line.integer<uint32_t>("resource"));
        MGPU_TRY(line.keyword("from"));
        MGPU_TRY_ASSIGN(reason.from, line.number("time"));
        claim.reason = reason;
      }
      MGPU_TRY(line.expectEnd());
      claims.push_back(claim);
    }
    return {};
  }

  LineSource lines;
  Certificate certificate;
};

} // namespace

Result<std::vector<Certificate>> parseCertificates(std::string_view text) {
  return CertificateParser(text).run();
}

} // namespace mgpu::planner
