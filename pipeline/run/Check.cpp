// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/run/Check.h"

#include "pipeline/plan/ProgramPlan.h"
#include "pipeline/program/Compiler.h"
#include "pipeline/target/Target.h"
#include "planner/schedule/PlanProof.h"
#include "support/FileIO.h"

#include <fmt/format.h>

#include <cstdio>

namespace mgpu::pipeline {

/// The proof of the plan's bound that the user gives, else our own.
static Result<std::vector<planner::Certificate>>
certificatesOf(const planner::Plan &plan, const planner::Dag &dag,
               const std::string &file) {
  if (file.empty()) {
    MGPU_TRY_ASSIGN(auto bound, planner::proofOf(plan, dag, false));
    return std::move(bound.certificates);
  }
  MGPU_TRY_ASSIGN(const std::vector<std::byte> bytes, readFile(file));
  return planner::parseCertificates(
      {reinterpret_cast<const char *>(bytes.data()), bytes.size()});
}

Result<std::string> checkPlan(const LoadedProgram &program,
                              const std::string &planFile,
                              const std::string &proof) {
  planner::Dag dag = program.dag;
  MGPU_TRY_ASSIGN(const planner::Plan plan, readPlan(planFile, dag));
  auto wrong = [&](const Error &error) {
    return fail(
        error.kind,
        fmt::format("{}: {}", proof.empty() ? planFile : proof, error.message));
  };
  const auto certificates = certificatesOf(plan, dag, proof);
  if (!certificates)
    return wrong(certificates.error());
  const auto proven = planner::checkProof(plan, dag, *certificates);
  if (!proven)
    return wrong(proven.error());
  std::string words = fmt::format("{}: safe: {}", planFile, plan.verdictLine());
  if (plan.boundBy == planner::BoundArgument::Search &&
      !planner::restsOnSearch(*certificates))
    words += "; the search behind its bound was not repeated";
  if (!proof.empty())
    words += fmt::format("\n{}: proves that no plan ends before {:.3f} us",
                         proof, *proven);
  return words;
}

Result<void> verifyKernels(const LoadedProgram &program,
                           std::vector<Message> &messages) {
  if (program.bundle)
    return {};
  std::vector<Result<void>> found;
  if (isCudaTarget(program.from.target))
    for (auto &text : program.compiler().emitCudaKernels(
             program.dag, program.variants, nullptr))
      found.push_back(text ? Result<void>() : fail(text.error()));
  else
    found = program.compiler().verifyHostKernels(program.dag);
  // CUDA C++ of the user's is for GPUs; where no target is named, that is one.
  const bool isNamed = program.from.given.contains("--target");
  Result<void> first;
  for (size_t k = 0; k < found.size(); ++k) {
    Result<void> &each = found[k];
    if (each || (!isNamed && !program.dag.kernels[k].hostText()))
      continue;
    messages.push_back({"error", each.error().location, each.error().message});
    if (first)
      first = std::move(each);
    else // the first is printed as the command's own error
      fmt::print(stderr, "{}\n", messages.back().text);
  }
  return first;
}

} // namespace mgpu::pipeline
