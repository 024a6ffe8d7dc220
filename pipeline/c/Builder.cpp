// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The builder's calls that declare and launch: C structs to those of
// ProgramBuilder.
#include "kernels/space/SpaceText.h"
#include "pipeline/c/BuilderHandle.h"
#include "support/Array.h"

using namespace mgpu;
using namespace mgpu::planner;
using namespace mgpu::pipeline;

namespace {

/// Numbers beyond these no caller means; they would count past the end of his
/// memory.
constexpr size_t mostRank = 32, mostItems = 1 << 20;

/// That `count` items are there.
Result<void> requireItems(const char *call, const void *items, size_t count,
                          size_t most = mostItems) {
  if (count > most)
    return usage(
        fmt::format("{}: {} items are more than {}", call, count, most));
  if (count > 0 && !items)
    return usage(
        fmt::format("{}: {} items and no memory of them", call, count));
  return {};
}

Result<ElementType> typeOf(const char *call, const char *name) {
  if (!name)
    return ElementType::F32;
  if (auto type = parseElementType(name))
    return *type;
  return usage(fmt::format("{}: '{}' is no type of an element; there are i1, "
                           "i8, i16, i32, i64, index, f8E4M3FN, f8E5M2, f16, "
                           "bf16, f32 and f64",
                           call, name));
}

Result<std::optional<ArgumentRole>> roleOf(const char *name) {
  if (!name)
    return std::optional<ArgumentRole>();
  for (int role = 0; role <= int(ArgumentRole::Dynamic); ++role)
    if (toString(ArgumentRole(role)) == name)
      return std::optional(ArgumentRole(role));
  return usage(fmt::format("mgt_builder_buffer: '{}' is no role; there are "
                           "input, output, inout, resident and dynamic",
                           name));
}

Result<BuiltView> viewOf(const mgt_builder &builder, const char *call,
                         const mgt_view &view) {
  MGPU_TRY_ASSIGN(BuiltView out, builder.program.whole({view.buffer}));
  out.offset = view.offset;
  if (!view.sizes && view.rank > 0)
    return usage(
        fmt::format("{}: a view of rank {} without sizes", call, view.rank));
  if (!view.sizes && !view.strides)
    return out;
  MGPU_TRY(requireItems(call, view.sizes, view.rank, mostRank));
  const std::vector<int64_t> own = std::move(out.strides);
  out.sizes.assign(view.sizes, view.sizes + view.rank);
  if (view.strides)
    out.strides.assign(view.strides, view.strides + view.rank);
  else if (own.size() == view.rank)
    out.strides = own;
  else {
    int64_t stride = 1;
    out.strides.assign(view.rank, 1);
    for (size_t k = view.rank; k-- > 0;) {
      out.strides[k] = stride;
      if (__builtin_mul_overflow(stride, out.sizes[k], &stride))
        return usage(fmt::format("{}: a view of more elements than there are "
                                 "numbers for",
                                 call));
    }
  }
  return out;
}

Result<std::vector<BuiltView>> viewsOf(const mgt_builder &builder,
                                       const char *call, const mgt_view *views,
                                       size_t count) {
  std::vector<BuiltView> out;
  for (size_t k = 0; k < count; ++k) {
    MGPU_TRY_ASSIGN(out.emplace_back(), viewOf(builder, call, views[k]));
  }
  return out;
}

Dim3 dimsOf(const uint32_t sizes[3]) {
  return {std::max(sizes[0], 1u), std::max(sizes[1], 1u),
          std::max(sizes[2], 1u)};
}

Result<void> addBuffer(mgt_builder &builder, const mgt_buffer_spec *given,
                       mgt_buffer *buffer) {
  const char *call = "mgt_builder_buffer";
  MGPU_TRY(requireNotNull(call, {given, buffer}));
  MGPU_TRY_ASSIGN(const auto spec, sized(given, call, "mgt_buffer_spec"));
  MGPU_TRY(requireItems(call, spec.shape, spec.rank, mostRank));
  if (spec.kind < MGT_ARGUMENT || spec.kind > MGT_EXTERNAL)
    return usage(fmt::format("{}: {} is no kind", call, spec.kind));
  BuiltBufferSpec out;
  out.name = textOf(spec.name);
  out.kind = BuiltKind(spec.kind);
  out.device = {spec.device};
  MGPU_TRY_ASSIGN(out.elementType, typeOf(call, spec.type));
  if (spec.rank > 0)
    out.shape.assign(spec.shape, spec.shape + spec.rank);
  MGPU_TRY_ASSIGN(out.role, roleOf(spec.role));
  if (out.kind == BuiltKind::Constant) {
    MGPU_TRY_ASSIGN(const int64_t bytes,
                    arrayBytes(out.elementType, out.shape));
    MGPU_TRY(requireItems(call, spec.contents, size_t(bytes), size_t(1) << 40));
    auto *data = static_cast<const std::byte *>(spec.contents);
    out.contents.assign(data, data + bytes);
  }
  MGPU_TRY_ASSIGN(const BuiltBuffer id,
                  builder.program.addBuffer(std::move(out)));
  *buffer = id.value;
  return {};
}

/// The rules of a kernel's tunables, which their first values keep.
Result<void> takeRules(const mgt_kernel_spec &spec, CudaFile &file) {
  for (size_t k = 0; k < spec.num_rules; ++k)
    file.rules.push_back(textOf(spec.rules[k]));
  if (file.tunables.size() > mostKernelTunables ||
      std::ranges::any_of(file.tunables, [](const KernelTunable &tunable) {
        return tunable.values.empty();
      }))
    return {}; // the builder says so
  kernels::KernelSpace space;
  for (const KernelTunable &tunable : file.tunables)
    space.addTunable(tunable);
  for (const std::string &rule : file.rules) {
    MGPU_TRY_ASSIGN(kernels::KernelConstraint read,
                    kernels::parseRule(rule, file.tunables));
    read.bindsDefaults = true;
    space.constraints = {std::move(read)};
    if (space.broken(space.defaults))
      return usage(fmt::format("mgt_builder_kernel: the first values of the "
                               "tunables break the rule '{}'",
                               rule));
  }
  return {};
}

Result<void> addKernel(mgt_builder &builder, const mgt_kernel_spec *given,
                       mgt_kernel *kernel) {
  const char *call = "mgt_builder_kernel";
  MGPU_TRY(requireNotNull(call, {given, kernel}));
  MGPU_TRY_ASSIGN(const auto spec,
                  sized(given, call, "mgt_kernel_spec",
                        MGPU_SIZE_UP_TO(mgt_kernel_spec, cubins)));
  MGPU_TRY(requireItems(call, spec.rules, spec.num_rules, 64));
  MGPU_TRY(requireItems(call, spec.tunables, spec.num_tunables));
  MGPU_TRY(requireItems(call, spec.cubins, spec.num_cubins));
  KernelSpec out;
  out.name = textOf(spec.name ? spec.name : spec.entry);
  out.block = dimsOf(spec.block);
  CudaFile file;
  file.file = out.name + ".cu";
  file.text = textOf(spec.cuda);
  file.host = textOf(spec.host);
  file.entry = textOf(spec.entry);
  file.hostEntry = textOf(spec.host_entry ? spec.host_entry : spec.entry);
  file.dynamicSharedBytes = spec.dynamic_shared_bytes;
  for (size_t k = 0; k < spec.num_tunables; ++k) {
    const mgt_tunable &tunable = spec.tunables[k];
    MGPU_TRY(requireItems(call, tunable.values, tunable.num_values, 64));
    auto *values = tunable.values;
    file.tunables.push_back({textOf(tunable.name), {}});
    if (tunable.num_values > 0)
      file.tunables.back().values.assign(values, values + tunable.num_values);
  }
  MGPU_TRY(takeRules(spec, file));
  for (size_t k = 0; k < spec.num_cubins; ++k) {
    const mgt_cubin &cubin = spec.cubins[k];
    MGPU_TRY(requireItems(call, cubin.data, cubin.bytes, size_t(1) << 30));
    const std::string arch = textOf(cubin.arch);
    if (!arch.starts_with("sm_") || cubin.bytes == 0)
      return usage(fmt::format("{}: cubins of '{}' are {} bytes for '{}': they "
                               "are for \"sm_90\" and the like",
                               call, out.name, cubin.bytes, arch));
    file.cubins[arch].assign(static_cast<const char *>(cubin.data),
                             cubin.bytes);
  }
  out.source = std::move(file);
  MGPU_TRY_ASSIGN(const BuiltKernel id,
                  builder.program.addKernel(std::move(out)));
  *kernel = id.value;
  return {};
}

Result<BuiltArgument> argumentOf(const mgt_builder &builder, const char *call,
                                 const mgt_arg &arg) {
  BuiltArgument out;
  if ((arg.access & ~(MGT_READ | MGT_WRITE | MGT_NOT_PASSED)) != 0)
    return usage(
        fmt::format("{}: access {} is no sum of MGT_READ, MGT_WRITE and "
                    "MGT_NOT_PASSED",
                    call, arg.access));
  out.reads = (arg.access & MGT_READ) != 0;
  out.writes = (arg.access & MGT_WRITE) != 0;
  out.isPassed = (arg.access & MGT_NOT_PASSED) == 0;
  if (!arg.type) {
    MGPU_TRY_ASSIGN(out.value, viewOf(builder, call, arg.view));
    return out;
  }
  MGPU_TRY_ASSIGN(const ElementType type, typeOf(call, arg.type));
  const uint32_t width = sizeBytes(type);
  const uint64_t mask =
      width == 8 ? ~uint64_t(0) : (uint64_t(1) << 8 * width) - 1;
  out.value = BuiltScalar{type, arg.bits & mask};
  return out;
}

Result<void> addLaunch(mgt_builder &builder, const mgt_launch_spec *given) {
  const char *call = "mgt_builder_launch";
  MGPU_TRY(requireNotNull(call, {given}));
  MGPU_TRY_ASSIGN(const auto spec,
                  sized(given, call, "mgt_launch_spec",
                        MGPU_SIZE_UP_TO(mgt_launch_spec, microseconds)));
  MGPU_TRY(requireItems(call, spec.args, spec.num_args, 1 << 16));
  BuiltLaunch out;
  out.kernel = {spec.kernel};
  out.device = {spec.device};
  out.grid = dimsOf(spec.grid);
  for (size_t k = 0; k < spec.num_args; ++k) {
    MGPU_TRY_ASSIGN(out.arguments.emplace_back(),
                    argumentOf(builder, call, spec.args[k]));
    if (spec.most_bytes && spec.most_bytes[k] != 0)
      out.arguments.back().mostBytes = spec.most_bytes[k];
  }
  out.name = textOf(spec.name);
  out.flops = spec.flops;
  if (spec.microseconds != 0)
    out.durationUs = spec.microseconds;
  return builder.program.launch(std::move(out));
}

Result<void> addCollective(mgt_builder &builder,
                           const mgt_collective_spec *given) {
  const char *call = "mgt_builder_collective";
  MGPU_TRY(requireNotNull(call, {given}));
  MGPU_TRY_ASSIGN(const auto spec, sized(given, call, "mgt_collective_spec"));
  if (spec.kind < MGT_ALL_REDUCE || spec.kind > MGT_SEND_RECV ||
      spec.reduction < MGT_SUM || spec.reduction > MGT_MAX)
    return usage(fmt::format("{}: there is no kind {} with reduction {}", call,
                             spec.kind, spec.reduction));
  if (!spec.send && !spec.receive)
    return usage(fmt::format("{}: neither what is sent nor what is received is "
                             "given",
                             call));
  const mgt_view *send = spec.send ? spec.send : spec.receive;
  MGPU_TRY(requireItems(call, send, spec.num_members));
  MGPU_TRY(requireItems(call, spec.pairs, spec.num_pairs));
  BuiltCollective out;
  out.kind = CollectiveKind(spec.kind);
  out.reduction = ReductionKind(spec.reduction);
  out.splitAxis = spec.axis;
  out.concatAxis =
      out.kind == CollectiveKind::AllToAll ? spec.concat_axis : spec.axis;
  out.root = spec.root;
  for (size_t k = 0; k < spec.num_pairs; ++k)
    out.pairs.push_back({spec.pairs[2 * k], spec.pairs[2 * k + 1]});
  MGPU_TRY_ASSIGN(out.send, viewsOf(builder, call, send, spec.num_members));
  MGPU_TRY_ASSIGN(out.receive,
                  viewsOf(builder, call, spec.receive ? spec.receive : send,
                          spec.num_members));
  return builder.program.collective(std::move(out));
}

} // namespace

mgt_status mgt_builder_new(const char *name, uint32_t devices,
                           mgt_builder **builder) {
  return guarded(nullptr, [&]() -> Result<void> {
    MGPU_TRY(requireNotNull("mgt_builder_new", {builder}));
    *builder = nullptr;
    constexpr uint32_t most = 1024;
    if (devices == 0 || devices > most)
      return usage(
          fmt::format("mgt_builder_new: a program has 1 to {} devices, "
                      "and not {}",
                      most, devices));
    *builder = new mgt_builder(name ? name : "main", devices);
    return {};
  });
}

void mgt_builder_free(mgt_builder *builder) { delete builder; }

const char *mgt_builder_error(const mgt_builder *builder) {
  return builder ? builder->error.c_str() : "";
}

mgt_status mgt_builder_place(mgt_builder *builder, const char *place) {
  return onBuilder(builder, "mgt_builder_place", [&]() -> Result<void> {
    builder->program.setPlace(textOf(place));
    return {};
  });
}

mgt_status mgt_builder_part(mgt_builder *builder, int part, uint32_t microbatch,
                            uint32_t stage) {
  return onBuilder(builder, "mgt_builder_part", [&]() -> Result<void> {
    if (part < MGT_NO_PART || part > MGT_WEIGHTS)
      return usage(fmt::format("mgt_builder_part: there is no part {}", part));
    builder->program.setPart(
        part == MGT_NO_PART
            ? std::nullopt
            : std::optional(planner::PipelinePart{
                  planner::PipelinePart::Kind(part), microbatch, stage}));
    return {};
  });
}

mgt_status mgt_builder_buffer(mgt_builder *builder, const mgt_buffer_spec *spec,
                              mgt_buffer *buffer) {
  return onBuilder(builder, "mgt_builder_buffer",
                   [&] { return addBuffer(*builder, spec, buffer); });
}

mgt_status mgt_builder_kernel(mgt_builder *builder, const mgt_kernel_spec *spec,
                              mgt_kernel *kernel) {
  return onBuilder(builder, "mgt_builder_kernel",
                   [&] { return addKernel(*builder, spec, kernel); });
}

mgt_status mgt_builder_launch(mgt_builder *builder,
                              const mgt_launch_spec *spec) {
  return onBuilder(builder, "mgt_builder_launch",
                   [&] { return addLaunch(*builder, spec); });
}

mgt_status mgt_builder_copy(mgt_builder *builder, const mgt_view *destination,
                            const mgt_view *source) {
  return mgt_builder_copy_as(builder, destination, source, nullptr);
}

mgt_status mgt_builder_copy_as(mgt_builder *builder,
                               const mgt_view *destination,
                               const mgt_view *source, const char *name) {
  const char *call = "mgt_builder_copy";
  return onBuilder(builder, call, [&]() -> Result<void> {
    MGPU_TRY(requireNotNull(call, {destination, source}));
    MGPU_TRY_ASSIGN(BuiltView to, viewOf(*builder, call, *destination));
    MGPU_TRY_ASSIGN(BuiltView from, viewOf(*builder, call, *source));
    return builder->program.copy(std::move(to), std::move(from), textOf(name));
  });
}

mgt_status mgt_builder_fill(mgt_builder *builder, const mgt_view *view,
                            const void *element, size_t bytes) {
  const char *call = "mgt_builder_fill";
  return onBuilder(builder, call, [&]() -> Result<void> {
    MGPU_TRY(requireNotNull(call, {view, element}));
    MGPU_TRY(requireItems(call, element, bytes, 8));
    MGPU_TRY_ASSIGN(BuiltView to, viewOf(*builder, call, *view));
    auto *data = static_cast<const std::byte *>(element);
    return builder->program.fill(std::move(to), {data, data + bytes});
  });
}

mgt_status mgt_builder_collective(mgt_builder *builder,
                                  const mgt_collective_spec *spec) {
  return onBuilder(builder, "mgt_builder_collective",
                   [&] { return addCollective(*builder, spec); });
}

mgt_status mgt_builder_begin_loop(mgt_builder *builder, uint64_t trips,
                                  int64_t first, int64_t step,
                                  mgt_buffer *value) {
  return onBuilder(builder, "mgt_builder_begin_loop", [&]() -> Result<void> {
    MGPU_TRY_ASSIGN(const BuiltBuffer id,
                    builder->program.beginLoop(trips, first, step));
    if (value)
      *value = id.value;
    return {};
  });
}

mgt_status mgt_builder_end_loop(mgt_builder *builder) {
  return onBuilder(builder, "mgt_builder_end_loop",
                   [&] { return builder->program.endLoop(); });
}

mgt_status mgt_builder_drop_loop(mgt_builder *builder) {
  return onBuilder(builder, "mgt_builder_drop_loop",
                   [&] { return builder->program.dropLoop(); });
}
