// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/compiler/ConfigWork.h"

#include "kernels/compile/CudaConfig.h"
#include "kernels/cuda/MatmulShape.h"
#include "pipeline/compiler/ParsedKernel.h"
#include "planner/import/WorkOf.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <functional>
#include <map>

namespace mgpu::kernels {

using namespace mlir;
using planner::LaunchWidth, planner::LaunchWork, planner::TileForm;
using P = KernelParameter;

namespace {

/// The value of a tunable, 0 where the space has none of that name.
uint32_t tunableOf(const KernelSpace &space, const KernelConfig &config,
                   std::string_view name) {
  for (size_t k = 0; k < space.tunables().size(); ++k)
    if (space.tunables()[k].name == name)
      return config.tunables[k];
  return 0;
}

LaunchWidth formOf(const KernelSpace &space, const KernelConfig &config) {
  LaunchWidth form;
  form.vector = std::max(config[P::Vector], 1u);
  form.unroll = config[P::Unroll];
  form.items = config[P::Items];
  form.isStaged = tunableOf(space, config, "MGPU_STAGE") != 0;
  if (space.reshapable) {
    form.blockX = config[P::BlockX];
    form.blockY = config[P::BlockY];
    form.blockZ = config[P::BlockZ];
  } else {
    form.rows = config[P::BlockY] / std::max(space.block.y, 1u);
  }
  return form;
}

std::optional<TileForm::Kind> kindOf(std::string_view form) {
  if (form == "tiles")
    return TileForm::Kind::Threads;
  if (form == "tensor_cores")
    return TileForm::Kind::Mma;
  if (form == "wgmma")
    return TileForm::Kind::Wgmma;
  return std::nullopt;
}

TileForm tileFormOf(TileForm::Kind kind, const KernelSpace &space,
                    const KernelConfig &config) {
  TileForm form;
  form.kind = kind;
  form.blockX = config[P::BlockX];
  form.blockY = config[P::BlockY];
  form.tileX = config[P::TileX];
  form.tileY = config[P::TileY];
  form.tiles = std::max(tunableOf(space, config, "MGPU_TILES"), 1u);
  form.columns = space.covered(config).x;
  form.rows = space.covered(config).y / form.tiles;
  form.depth = tunableOf(space, config, "MGPU_DEPTH");
  form.stages = tunableOf(space, config, "MGPU_STAGES");
  form.warpsY = std::max(tunableOf(space, config, "MGPU_WARPS_Y"), 1u);
  form.sharedBytes = space.sharedBytesOf(config);
  return form;
}

/// Puts the body of @entry into a region of its own, outside of which its
/// arguments are: there they are what a launch captures.
Region &enclose(func::FuncOp entry) {
  Region &from = entry.getBody();
  entry.getContext()->loadDialect<scf::SCFDialect>();
  OpBuilder builder(entry.getContext());
  builder.setInsertionPointToStart(&from.front());
  auto inside =
      scf::ExecuteRegionOp::create(builder, entry.getLoc(), TypeRange());
  Region &to = inside.getRegion();
  to.push_back(new Block());
  auto &operations = from.front().getOperations();
  to.front().getOperations().splice(to.front().end(), operations,
                                    std::next(operations.begin()),
                                    operations.end());
  to.getBlocks().splice(to.end(), from.getBlocks(), std::next(from.begin()),
                        from.end());
  return to;
}

/// What a launch passes for an argument.
planner::HostValue valueOf(BlockArgument argument,
                           const planner::KernelCall &call) {
  const planner::KernelArgument &given =
      call.arguments[argument.getArgNumber()];
  const Type type = argument.getType();
  if (const auto *bits = std::get_if<uint64_t>(&given.value)) {
    if (!type.isIntOrIndex())
      return {};
    const unsigned width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
    return IntegerAttr::get(type, APInt(64, *bits).zextOrTrunc(width));
  }
  auto memref = dyn_cast<MemRefType>(type);
  planner::View view{std::get<planner::BufferId>(given.value), 0, {}, {}};
  SmallVector<int64_t> strides;
  const auto element =
      memref ? planner::elementTypeOf(memref.getElementType()) : std::nullopt;
  if (!element || !memref.hasStaticShape() ||
      failed(memref.getStridesAndOffset(strides, view.offset)) ||
      ShapedType::isDynamic(view.offset) ||
      llvm::is_contained(strides, ShapedType::kDynamic))
    return {};
  view.offset += given.offsetBytes / sizeBytes(*element);
  view.sizes.assign(memref.getShape().begin(), memref.getShape().end());
  view.strides.assign(strides.begin(), strides.end());
  return view;
}

/// Counts each form once.
class FormCounter {
public:
  FormCounter(func::FuncOp entry, const planner::KernelSpec &spec,
              const planner::KernelCall &call)
      : call(call), block(spec.block), body(enclose(entry)),
        affine(body, call.grid, block, values), views(body, affine, values) {}

  const LaunchWork &of(const LaunchWidth &form) {
    auto [at, isNew] = known.try_emplace(form);
    if (isNew)
      at->second = planner::workOf(body, call.grid, block, form, views, affine);
    return at->second;
  }

private:
  const planner::KernelCall &call;
  Dim3 block;
  Region &body;
  std::function<planner::HostValue(Value)> values = [this](Value value) {
    return valueOf(cast<BlockArgument>(value), call);
  };
  planner::AffineEvaluator affine;
  planner::KernelViews views;
  std::map<LaunchWidth, LaunchWork> known;
};

} // namespace

Result<std::vector<std::optional<LaunchWork>>>
launchWorkOf(const planner::KernelSpec &spec, const planner::KernelCall &call,
             const CudaText &text, std::span<const KernelConfig> configs) {
  std::vector<std::optional<LaunchWork>> works(configs.size());
  if (spec.cudaFile() || !text.space || !spec.hostText())
    return works;
  MGPU_TRY_ASSIGN(ParsedKernel parsed, parseKernel(spec));
  auto entry = parsed.module->lookupSymbol<func::FuncOp>("entry");
  const KernelSpace &space = *text.space;
  const auto kind = kindOf(text.form);
  const auto product = kind ? cuda::matmulShapeOf(*parsed.module)
                            : std::optional<cuda::MatmulShape>();
  const double threads =
      double(call.grid.volume()) * double(spec.block.volume());
  std::optional<FormCounter> counter;
  if (!product)
    counter.emplace(entry, spec, call);
  for (size_t k = 0; k < configs.size(); ++k) {
    if (libraryPlace(space, configs[k]).value_or(0) > 0)
      continue;
    works[k] = product
                   ? planner::workOfTiles(product->sizes(),
                                          tileFormOf(*kind, space, configs[k]),
                                          threads)
                   : counter->of(formOf(space, configs[k]));
  }
  return works;
}

} // namespace mgpu::kernels
