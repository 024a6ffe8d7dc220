// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/cost/Contention.h"

#include <algorithm>
#include <fmt/format.h>

namespace mgpu::planner {

static WorkClass classOf(std::string_view work) {
  return work == "copy"         ? WorkClass::Copy
         : work == "collective" ? WorkClass::Collective
                                : WorkClass::Kernel;
}

/// A measured figure replaces an assumed one.
static void calibrate(Contention &contention,
                      const device::Topology::Calibration &measured,
                      std::vector<Coefficient> *list) {
  auto set = [&](std::string_view work, std::string_view beside,
                 double factor) {
    contention.factor[size_t(classOf(work))][size_t(classOf(beside))] = factor;
    if (!list)
      return;
    std::string name = fmt::format("contention.{}_beside_{}", work, beside);
    std::erase_if(*list, [&](const Coefficient &c) { return c.name == name; });
    list->push_back(
        {std::move(name), "times", factor, Origin::Measured, measured.source});
  };
  for (const auto &each : measured.contention)
    set(each.work, each.beside, each.factor);
  // Two kernels take the row with the most multiprocessors, since those of the
  // planner have all of them.
  const device::Topology::Calibration::BesideKernel *most = nullptr;
  for (const auto &each : measured.besideKernel)
    if (!most || each.multiprocessors > most->multiprocessors)
      most = &each;
  if (most)
    set("kernel", "kernel", most->factor);
}

Contention contentionOf(const device::Topology &topology,
                        std::vector<Coefficient> *list) {
  Contention contention;
  if (topology.link.kind == device::LinkKind::Memory)
    return contention;
  auto set = [&](WorkClass mine, WorkClass other, double factor,
                 const char *name, Origin origin, const char *source) {
    contention.factor[size_t(mine)][size_t(other)] = factor;
    if (list)
      list->push_back({name, "times", factor, origin, source});
  };
  double memory = topology.device.memoryBytesPerSecond;
  double link = topology.link.bytesPerSecond;
  bool pcie = topology.link.kind == device::LinkKind::Pcie;
  // Copies touch the memory once at each end, at the rate of the faster of the
  // two links they may take.
  double copyLoad =
      std::min(1.0, std::max(link, topology.hostLink.bytesPerSecond) / memory);
  const auto *share = topology.rate("beside_collective_share");
  set(WorkClass::Kernel, WorkClass::Collective,
      1 / (share ? share->value : 1 - 0.15),
      "contention.kernel_beside_collective",
      share ? Origin::Assumed : Origin::Published,
      share ? "beside_collective_share of the machine"
            : "Calculon's A100 system: communication takes 15 % of the SMs");
  set(WorkClass::Kernel, WorkClass::Copy, 1 + copyLoad,
      "contention.kernel_beside_copy", Origin::Assumed,
      "a kernel bound by memory, which loses what the link moves");
  set(WorkClass::Collective, WorkClass::Kernel, 1.1,
      "contention.collective_beside_kernel", Origin::Assumed,
      "memory and SMs are busy");
  set(WorkClass::Copy, WorkClass::Kernel, 1.05, "contention.copy_beside_kernel",
      Origin::Assumed, "memory is busy");
  double shared = pcie ? 2 : 1.1;
  const char *why = pcie ? "both take the one PCIe link"
                         : "copies to the host take another link; memory is "
                           "busy";
  set(WorkClass::Collective, WorkClass::Copy, shared,
      "contention.collective_beside_copy", Origin::Assumed, why);
  set(WorkClass::Copy, WorkClass::Collective, shared,
      "contention.copy_beside_collective", Origin::Assumed, why);
  if (const auto &measured = topology.calibration)
    calibrate(contention, *measured, list);
  return contention;
}

} // namespace mgpu::planner
