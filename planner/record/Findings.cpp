// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/record/Findings.h"

namespace mgpu::planner {

Place Findings::place(std::string text, std::optional<PipelinePart> part) {
  places.push_back({std::move(text), part});
  return {uint32_t(places.size() - 1)};
}

tl::unexpected<Error> Findings::asError(const Finding &finding) const {
  auto prefix = [&](Place place) {
    return textOf(place).empty() ? "" : textOf(place) + ": ";
  };
  std::string text = prefix(finding.place) + finding.text;
  for (const Finding::Note &note : finding.notes)
    text += " (" + prefix(note.place) + note.text + ")";
  return fail(finding.kind, std::move(text));
}

tl::unexpected<Error> Findings::error(Finding finding) {
  finding.isError = true;
  if (sink)
    sink(finding);
  return asError(finding);
}

tl::unexpected<Error> Findings::callError(Place place, std::string text,
                                          ErrorKind kind) {
  Finding finding;
  finding.kind = kind;
  finding.place = place;
  finding.text = std::move(text);
  finding.isAboutCall = true;
  return error(std::move(finding));
}

void Findings::warn(Finding finding) {
  finding.isError = false;
  if (sink)
    sink(finding);
}

} // namespace mgpu::planner
