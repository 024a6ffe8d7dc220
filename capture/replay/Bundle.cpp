// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "capture/replay/Bundle.h"

#include "kernels/space/SpaceText.h"
#include "planner/dag/ProgramText.h"
#include "planner/plan/Verify.h"
#include "support/Sha256.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>
#include <thread>

namespace mgpu::capture {

using namespace planner;

/// How a line of ProgramRecord::options begins.
static constexpr std::string_view threadsPrefix = "threads ";

/// The name of an image of the target's own: "sm_90" and its text's hash.
static constexpr std::string_view ownForm = "own-cubin";

/// Points of a kernel's space for the host, legal or not; narrowed() gives no
/// more.
static constexpr uint64_t mostWays = 1 << 16;

static std::string wayName(const std::string &level,
                           const kernels::KernelConfig &config) {
  return level + " " + toText(config);
}

Result<void> writeBundle(const std::string &path,
                         const BundleContents &contents) {
  db::BundleRecord record;
  Blobs blobs;
  record.program = contents.origin;
  if (contents.threads > 0)
    record.program.options +=
        fmt::format("{}{}\n", threadsPrefix, contents.threads);
  record.program.text = toText(contents.program, blobs);
  record.plans.push_back({"host", toText(contents.plan, contents.program.dag)});
  uint32_t k = 0;
  auto add = [&](std::string form, std::string target, std::string facts,
                 std::span<const std::byte> bytes) {
    std::string hash = Sha256().add(bytes).hex();
    blobs.try_emplace(hash, bytes.begin(), bytes.end());
    record.images.push_back({k, std::move(form), std::move(target),
                             std::move(facts), std::move(hash)});
  };
  // They belong to no kernel of the program, and are with the first.
  for (const auto &[which, bytes] : contents.own)
    add(std::string(ownForm), which.first + " " + which.second, "", bytes);
  for (; k < contents.kernels.size(); ++k) {
    const KernelForms &forms = contents.kernels[k];
    for (const auto &[arch, bytes] : forms.cubins)
      add("cubin", arch, "", bytes);
    if (forms.cuda)
      add("cuda", "", kernels::factsText(*forms.cuda),
          forms.cuda->image.bytes());
    for (const auto &[level, bytes] : forms.host)
      add("host", level, "", bytes);
    for (const auto &[level, ways] : forms.alternatives)
      for (const auto &[config, bytes] : ways)
        add("host-way", wayName(level, config), "", bytes);
    if (forms.hostSpace) {
      const std::string space = kernels::spaceText(*forms.hostSpace);
      add("host-space", "", "", std::as_bytes(std::span(space)));
    }
  }
  return db::writeBundle(path, record, blobs);
}

Result<Bundle> Bundle::open(const std::string &path) {
  MGPU_TRY_ASSIGN(db::BundleStore store, db::BundleStore::open(path));
  return read(path, std::move(store));
}

Result<Bundle> Bundle::ofBytes(std::span<const std::byte> bytes) {
  const std::string name = "bundle in memory";
  MGPU_TRY_ASSIGN(db::BundleStore store, db::BundleStore::ofBytes(bytes, name));
  return read(name, std::move(store));
}

Result<Bundle> Bundle::read(std::string name, db::BundleStore store) {
  Bundle bundle(std::move(name), std::move(store));
  auto program =
      readProgram(bundle.origin().text, [&](const std::string &hash) {
        return bundle.store.blob(hash);
      });
  if (!program)
    return failIn(fmt::format("'{}', made by mgpu {}: ", bundle.name,
                              bundle.origin().version),
                  program.error());
  bundle.theProgram = std::move(*program);
  return bundle;
}

std::string Bundle::hash() const {
  const db::BundleRecord &record = store.record();
  Sha256 hash;
  const db::ProgramRecord &from = record.program;
  for (const std::string *text : {&from.entry, &from.source, &from.sourceHash,
                                  &from.version, &from.options, &from.text})
    hash.addField(*text);
  for (const db::PlanRecord &each : record.plans) {
    hash.addField(each.target).addField(each.text);
  }
  for (const db::ImageRecord &each : record.images)
    for (const std::string *text :
         {&each.form, &each.target, &each.facts, &each.blob})
      hash.addField(*text);
  return hash.hex();
}

Program Bundle::takeProgram() {
  Program out = std::move(theProgram);
  theProgram = {};
  theProgram.dag.kernels = out.dag.kernels;
  return out;
}

uint32_t Bundle::threads() const {
  std::string_view options = origin().options;
  uint32_t threads = 0;
  for (size_t at = 0, end; at < options.size(); at = end + 1) {
    end = std::min(options.find('\n', at), options.size());
    std::string_view line = options.substr(at, end - at);
    if (!line.starts_with(threadsPrefix))
      continue;
    const char *last = line.data() + line.size();
    auto [stop, error] =
        std::from_chars(line.data() + threadsPrefix.size(), last, threads);
    if (error != std::errc() || stop != last)
      return 0; // another version's, which says something else
  }
  return std::min(threads, std::max(std::thread::hardware_concurrency(), 1u));
}

Result<Plan> Bundle::plan() const {
  for (const db::PlanRecord &record : store.record().plans) {
    if (record.target != "host")
      continue;
    Result<Plan> plan = parsePlan(record.text, theProgram.dag);
    if (!plan)
      return failIn(fmt::format("'{}': ", name), plan.error());
    if (Result<void> ok = planner::verify(*plan, theProgram.dag); !ok)
      return fail(ErrorKind::Invalid, fmt::format("'{}': unsafe plan: {}", name,
                                                  ok.error().message));
    return plan;
  }
  return fail(ErrorKind::Absent,
              fmt::format("'{}' holds no plan for the host", name));
}

Result<void> Bundle::verify() {
  MGPU_TRY(plan());
  for (const db::ImageRecord &image : store.record().images)
    MGPU_TRY(store.blob(image.blob));
  if (!targets("cuda").empty())
    MGPU_TRY(cudaTexts());
  return checkWays();
}

const db::ImageRecord *Bundle::find(uint32_t kernel, std::string_view form,
                                    std::string_view target) const {
  // The images are sorted by kernel, form and target.
  auto key = [](const db::ImageRecord &image) {
    return std::tuple<uint32_t, std::string_view, std::string_view>(
        image.kernel, image.form, image.target);
  };
  std::tuple wanted(kernel, form, target);
  const auto &images = store.record().images;
  auto at =
      std::lower_bound(images.begin(), images.end(), wanted,
                       [&](const db::ImageRecord &image, const auto &value) {
                         return key(image) < value;
                       });
  return at != images.end() && key(*at) == wanted ? &*at : nullptr;
}

std::pair<std::string, std::string> ownKey(std::string arch,
                                           std::string_view text) {
  return {std::move(arch), Sha256().add(std::as_bytes(std::span(text))).hex()};
}

Result<OwnCubins> Bundle::ownCubins() {
  OwnCubins out;
  for (const db::ImageRecord &image : store.record().images)
    if (size_t space = image.target.find(' ');
        image.form == ownForm && space != std::string::npos) {
      MGPU_TRY_ASSIGN(std::vector<std::byte> bytes, store.blob(image.blob));
      out.emplace(std::pair(image.target.substr(0, space),
                            image.target.substr(space + 1)),
                  std::move(bytes));
    }
  return out;
}

std::vector<std::string> Bundle::targets(std::string_view form) const {
  std::set<std::string> all;
  for (const db::ImageRecord &image : store.record().images)
    if (image.form == form)
      all.insert(image.target);
  std::vector<std::string> whole;
  for (const std::string &target : all) {
    bool every = true;
    for (uint32_t k = 0; every && k < theProgram.dag.kernels.size(); ++k)
      every = find(k, form, target) != nullptr;
    if (every)
      whole.push_back(target);
  }
  return whole;
}

Result<std::vector<std::vector<std::byte>>>
Bundle::images(std::string_view form, std::string_view target) {
  std::vector<std::vector<std::byte>> out;
  for (uint32_t k = 0; k < theProgram.dag.kernels.size(); ++k) {
    const db::ImageRecord *image = find(k, form, target);
    if (!image)
      return fail(ErrorKind::Absent,
                  fmt::format("'{}' has no {} of kernel '{}'{}{}", name, form,
                              theProgram.dag.kernels[k].name,
                              target.empty() ? "" : " for ", target));
    MGPU_TRY_ASSIGN(std::vector<std::byte> bytes, store.blob(image->blob));
    out.push_back(std::move(bytes));
  }
  return out;
}

static std::string listOf(const std::vector<std::string> &targets) {
  return targets.empty() ? "none" : fmt::format("{}", fmt::join(targets, ", "));
}

Result<Bundle::HostKernels>
Bundle::hostKernels(std::span<const std::string_view> levels) {
  std::vector<std::string> there = targets("host");
  if (theProgram.dag.kernels.empty())
    return HostKernels{};
  for (std::string_view level : levels)
    if (std::find(there.begin(), there.end(), level) != there.end()) {
      MGPU_TRY_ASSIGN(auto objects, images("host", level));
      return HostKernels{std::string(level), std::move(objects)};
    }
  if (there.empty())
    return fail(ErrorKind::Absent,
                fmt::format("'{}' has no kernels for the host: it was made of "
                            "CUDA C++ that runs on GPUs alone; use --target "
                            "cuda:0",
                            name));
  return fail(ErrorKind::Absent,
              fmt::format("'{}' has kernels for {}, and none for {}: make it "
                          "again with --cpu",
                          name, listOf(there),
                          levels.empty()
                              ? std::string("this processor")
                              : fmt::format("{}", fmt::join(levels, ", "))));
}

/// Bundles once had lines of words where there is JSON now, and fields for
/// matmuls where kernels have rules.
static Result<void> checkIsJson(const std::string &name,
                                std::string_view text) {
  if (text.starts_with('{') &&
      text.find("\"staged_bytes\"") == std::string_view::npos)
    return {};
  return fail(ErrorKind::Invalid,
              fmt::format("'{}' was made by an older mgpu, which described its "
                          "kernels in another form: make it again",
                          name));
}

Result<std::optional<kernels::KernelSpace>>
Bundle::hostSpaceOf(uint32_t kernel) {
  const db::ImageRecord *image = find(kernel, "host-space", "");
  if (!image)
    return std::optional<kernels::KernelSpace>();
  MGPU_TRY_ASSIGN(std::vector<std::byte> bytes, store.blob(image->blob));
  const std::string_view text(reinterpret_cast<const char *>(bytes.data()),
                              bytes.size());
  MGPU_TRY(checkIsJson(name, text));
  auto space = kernels::parseSpace(text);
  if (!space)
    return failIn(fmt::format("'{}': ", name), space.error());
  return std::optional<kernels::KernelSpace>(std::move(*space));
}

Result<void> Bundle::checkSpace(const kernels::KernelSpace &space,
                                const kernels::CudaText &text) const {
  if (space.target == kernels::KernelTarget::Cuda &&
      space.block == text.image.sourceBlock &&
      space.reshapable == text.reshapable &&
      space.defaults.block() == text.image.block &&
      space.covered(space.defaults) == text.image.covers)
    return {};
  return fail(ErrorKind::Invalid,
              fmt::format("'{}': the space of kernel '{}' is another one's",
                          name, text.name));
}

Result<std::optional<std::vector<kernels::KernelSpace>>> Bundle::hostSpaces() {
  using Spaces = std::optional<std::vector<kernels::KernelSpace>>;
  std::vector<kernels::KernelSpace> spaces;
  for (uint32_t k = 0; k < theProgram.dag.kernels.size(); ++k) {
    MGPU_TRY_ASSIGN(auto space, hostSpaceOf(k));
    if (!space)
      return Spaces();
    if (space->target != kernels::KernelTarget::Host ||
        space->block != theProgram.dag.kernels[k].block)
      return fail(ErrorKind::Invalid,
                  fmt::format("'{}': the space of kernel '{}' is another one's",
                              name, theProgram.dag.kernels[k].name));
    if (space->productSize() > mostWays)
      return fail(ErrorKind::Invalid,
                  fmt::format("'{}': the space of kernel '{}' has more than {} "
                              "points",
                              name, theProgram.dag.kernels[k].name, mostWays));
    spaces.push_back(std::move(*space));
  }
  return Spaces(std::move(spaces));
}

Result<void> Bundle::checkWays() {
  MGPU_TRY_ASSIGN(auto spaces, hostSpaces());
  if (!spaces)
    return {};
  for (const std::string &level : targets("host"))
    for (uint32_t k = 0; k < spaces->size(); ++k)
      for (const kernels::KernelConfig &config : (*spaces)[k].legal())
        if (config != (*spaces)[k].defaults &&
            !find(k, "host-way", wayName(level, config)))
          return fail(ErrorKind::Invalid, noWay(k, level, config));
  return {};
}

std::string Bundle::noWay(uint32_t kernel, const std::string &level,
                          const kernels::KernelConfig &config) const {
  return fmt::format("'{}' has no kernel '{}' for {} with {}: make it again",
                     name, theProgram.dag.kernels[kernel].name, level,
                     toText(config));
}

Result<std::vector<std::byte>>
Bundle::hostKernel(uint32_t kernel, const std::string &level,
                   const kernels::KernelConfig &config) {
  const db::ImageRecord *image =
      find(kernel, "host-way", wayName(level, config));
  if (!image)
    return fail(ErrorKind::Invalid, noWay(kernel, level, config));
  return store.blob(image->blob);
}

Result<std::vector<kernels::CudaText>> Bundle::cudaTexts() {
  MGPU_TRY_ASSIGN(auto sources, images("cuda", ""));
  std::vector<kernels::CudaText> texts;
  for (uint32_t k = 0; k < sources.size(); ++k) {
    const std::string &facts = find(k, "cuda", "")->facts;
    MGPU_TRY(checkIsJson(name, facts));
    auto text = kernels::parseFacts(facts);
    if (!text)
      return failIn(fmt::format("'{}': ", name), text.error());
    text->image.setBytes(sources[k]);
    if (text->space)
      MGPU_TRY(checkSpace(*text->space, *text));
    texts.push_back(std::move(*text));
  }
  return texts;
}

Result<std::vector<std::vector<std::byte>>>
Bundle::cubins(std::string_view arch) {
  std::vector<std::string> there = targets("cubin");
  if (!theProgram.dag.kernels.empty() &&
      std::find(there.begin(), there.end(), arch) == there.end())
    return fail(ErrorKind::Absent,
                fmt::format("'{}' has cubins for {}, and none for {}: make it "
                            "again with --arch {}",
                            name, listOf(there), arch, arch));
  return images("cubin", arch);
}

} // namespace mgpu::capture
