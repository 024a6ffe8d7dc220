// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TUNER_RECORD_PROVENANCE_H
#define MGPU_TUNER_RECORD_PROVENANCE_H

#include "db/Trial.h"

namespace mgpu::tuner {

/// Where a result comes from that is measured now on this machine by `version`
/// of this program: the machine's name and its bench::Environment as JSON, with
/// `pinnedCpus` as bench::cpusText() has it. The store sets the time.
db::Provenance provenanceHere(std::string version, std::string pinnedCpus);

} // namespace mgpu::tuner

#endif // MGPU_TUNER_RECORD_PROVENANCE_H
