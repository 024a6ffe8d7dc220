// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TUNER_RECORD_PROVENANCE_H
#define MGPU_TUNER_RECORD_PROVENANCE_H

#include "db/Trial.h"

namespace mgpu::tuner {

/// Of what is measured now on this machine by `version` of this program: the
/// machine's name and what bench/measure/Environment.h reads of it, as JSON;
/// with `pinnedCpus` as bench::cpusText() has it. The store sets the time.
db::Provenance provenanceHere(std::string version, std::string pinnedCpus);

} // namespace mgpu::tuner

#endif // MGPU_TUNER_RECORD_PROVENANCE_H
