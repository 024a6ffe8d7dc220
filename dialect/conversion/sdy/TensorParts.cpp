// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/sdy/TensorParts.h"

#include "dialect/mgpu/Diagnostics.h"

#include "llvm/ADT/MapVector.h"

#include <map>

namespace mgpu::conversion {

using namespace mlir;

Parts Parts::whole(int64_t devices, int64_t rank) {
  Parts parts;
  parts.counts.assign(rank, 1);
  parts.of.assign(devices, SmallVector<int64_t>(rank, 0));
  return parts;
}

std::optional<SmallVector<int64_t>>
Parts::shapeOf(ArrayRef<int64_t> shape) const {
  SmallVector<int64_t> result(shape);
  for (auto [size, count] : llvm::zip_equal(result, counts)) {
    if (size % count != 0)
      return std::nullopt;
    size /= count;
  }
  return result;
}

std::optional<spmd::DeviceGroups> Parts::groupsAlong(unsigned dim) const {
  // Replicas are told apart by how many came before with the same parts.
  std::map<SmallVector<int64_t>, int64_t> seen;
  std::map<SmallVector<int64_t>, SmallVector<int64_t>> groups;
  for (auto [device, parts] : llvm::enumerate(of)) {
    SmallVector<int64_t> key(parts);
    key.push_back(seen[parts]++);
    key[dim] = 0;
    auto &group = groups[key];
    if (group.empty())
      group.assign(counts[dim], -1);
    group[parts[dim]] = device;
  }
  spmd::DeviceGroups result;
  for (auto &[key, group] : groups) {
    if (llvm::is_contained(group, -1))
      return std::nullopt;
    result.push_back(group);
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Meshes
//===----------------------------------------------------------------------===//

/// How far apart neighbours along `axis` are in the row-major mesh.
static int64_t strideOf(sdy::MeshAttr mesh, sdy::AxisRefAttr axis) {
  int64_t stride = 1;
  for (sdy::MeshAxisAttr after :
       mesh.getAxes().drop_front(mesh.axisIndex(axis.getName()) + 1))
    stride *= after.getSize();
  if (axis.isSubAxis())
    stride *=
        mesh.axisSize(axis.getName()) / (axis.getPreSize() * axis.getSize());
  return stride;
}

/// Which position along `axis` the place `at` of the mesh has.
static int64_t positionAlong(sdy::MeshAttr mesh, sdy::AxisRefAttr axis,
                             int64_t at) {
  return at / strideOf(mesh, axis) % axis.sizeIn(mesh);
}

static int64_t deviceAt(sdy::MeshAttr mesh, int64_t place) {
  return mesh.getDeviceIds().empty() ? place : mesh.getDeviceIds()[place];
}

FailureOr<Parts> partsOf(Operation *op, sdy::TensorShardingAttr sharding,
                         ArrayRef<StringAttr> axes, int64_t devices) {
  sdy::MeshAttr mesh = sdy::meshOf(op, sharding.getMesh());
  if (!mesh || mesh.numDevices() != devices)
    return ir::emitUnsupported(op)
           << "has a mesh of " << (mesh ? mesh.numDevices() : 0)
           << " devices in a program for " << devices
           << "; this version takes one size of mesh";
  if (!sharding.getUnreduced().empty())
    return ir::emitUnsupported(op) << "has an unreduced sharding " << sharding
                                   << ", which this version does not read";
  Parts parts = Parts::whole(devices, sharding.getDims().size());
  for (auto [dim, cut] : llvm::enumerate(sharding.getDims()))
    for (sdy::AxisRefAttr axis : cut.getAxes()) {
      if (!llvm::is_contained(axes, axis.getName()))
        continue;
      int64_t size = axis.sizeIn(mesh);
      parts.counts[dim] *= size;
      for (int64_t place = 0; place < devices; ++place) {
        int64_t &part = parts.of[deviceAt(mesh, place)][dim];
        part = part * size + positionAlong(mesh, axis, place);
      }
    }
  return parts;
}

std::optional<spmd::DeviceGroups> groupsAlong(sdy::MeshAttr mesh,
                                              ArrayRef<sdy::AxisRefAttr> axes) {
  // Devices of one group have the same places along everything else: the place
  // with those along `axes` set to 0.
  llvm::MapVector<int64_t, std::map<int64_t, int64_t>> groups;
  for (int64_t place = 0; place < mesh.numDevices(); ++place) {
    int64_t rest = place, rank = 0;
    for (sdy::AxisRefAttr axis : axes) {
      if (mesh.axisIndex(axis.getName()) < 0)
        return std::nullopt;
      int64_t position = positionAlong(mesh, axis, place);
      rest -= position * strideOf(mesh, axis);
      rank = rank * axis.sizeIn(mesh) + position;
    }
    groups[rest][rank] = deviceAt(mesh, place);
  }
  spmd::DeviceGroups result;
  for (auto &[rest, group] : groups)
    result.push_back(llvm::map_to_vector(
        group, [](const auto &member) { return member.second; }));
  return result;
}

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

static SmallVector<int64_t> primeFactors(int64_t number) {
  SmallVector<int64_t> factors;
  for (int64_t prime = 2; number > 1; ++prime)
    for (; number % prime == 0; number /= prime)
      factors.push_back(prime);
  return factors;
}

/// The layout on a row-major mesh of `sizes`; null where there is none.
static spmd::LayoutAttr layoutOn(MLIRContext *context, const Parts &parts,
                                 ArrayRef<int64_t> sizes) {
  // The axes are ordered by what a step along each adds to a dimension's part.
  SmallVector<DenseI64ArrayAttr> split;
  for (unsigned dim = 0; dim < parts.counts.size(); ++dim) {
    SmallVector<std::pair<int64_t, int64_t>> steps;
    int64_t inner = parts.numDevices();
    for (auto [axis, size] : llvm::enumerate(sizes)) {
      inner /= size;
      if (int64_t step = parts.of[inner % parts.numDevices()][dim])
        steps.emplace_back(-step, axis);
    }
    llvm::sort(steps);
    split.push_back(DenseI64ArrayAttr::get(
        context, llvm::map_to_vector(
                     steps, [](const auto &step) { return step.second; })));
  }
  auto layout = spmd::LayoutAttr::get(context, sizes, split);
  for (auto [device, of] : llvm::enumerate(parts.of))
    for (auto [dim, part] : llvm::enumerate(of))
      if (layout.parts(dim) != parts.counts[dim] ||
          layout.partOf(dim, device) != part)
        return {};
  return layout;
}

spmd::LayoutAttr layoutOf(MLIRContext *context, const Parts &parts) {
  int64_t devices = parts.numDevices();
  if (parts.isWhole())
    return spmd::replicated(context, devices, parts.counts.size());
  if (spmd::LayoutAttr layout = layoutOn(context, parts, {devices}))
    return layout;
  // Meshes of two axes are what people write; primes are the finest mesh.
  for (int64_t outer = 2; outer < devices; ++outer)
    if (devices % outer == 0)
      if (spmd::LayoutAttr layout =
              layoutOn(context, parts, {outer, devices / outer}))
        return layout;
  return layoutOn(context, parts, primeFactors(devices));
}

bool isOverWholeTensors(func::FuncOp function) {
  AttrTypeWalker walker;
  bool isCut = false;
  walker.addWalk([&](sdy::TensorShardingAttr sharding) {
    isCut |= llvm::any_of(sharding.getDims(), [](const auto &dim) {
      return !dim.getAxes().empty();
    });
  });
  walker.addWalk([&](DictionaryAttr attributes) {
    if (auto text = attributes.getAs<StringAttr>("mhlo.sharding"))
      isCut |= devicesOfText(text) > 1;
  });
  function.walk([&](Operation *op) { walker.walk(op->getAttrDictionary()); });
  return isCut;
}

FailureOr<Cutting> cuttingOf(Operation *op, DictionaryAttr attributes,
                             RankedTensorType type, int64_t devices) {
  Cutting whole{{}, Parts::whole(devices, type.getRank())};
  if (!attributes)
    return whole;
  auto sharding = attributes.getAs<sdy::TensorShardingAttr>(sdy::shardingName);
  if (auto text = attributes.getAs<StringAttr>("mhlo.sharding");
      text && !sharding) {
    FailureOr<Parts> parts = partsOfText(op, text, type.getRank(), devices);
    if (failed(parts))
      return failure();
    return Cutting{{}, std::move(*parts)};
  }
  sdy::MeshAttr mesh =
      sharding ? sdy::meshOf(op, sharding.getMesh()) : sdy::MeshAttr();
  if (!mesh || mesh.numDevices() == 1)
    return Cutting{sharding, std::move(whole.parts)};
  SmallVector<StringAttr> axes;
  for (sdy::MeshAxisAttr axis : mesh.getAxes())
    axes.push_back(axis.getName());
  FailureOr<Parts> parts = partsOf(op, sharding, axes, devices);
  if (failed(parts))
    return failure();
  return Cutting{sharding, std::move(*parts)};
}

// XLA's text of a sharding: `{devices=[2,1,2]<=[2,2]T(1,0)
// last_tile_dim_replicate}`, `{replicated}`, `{manual}`.

namespace {

/// A grid of tiles, and the device of each. No tiles: all have all.
struct Tiling {
  SmallVector<int64_t> tiles, devices;
  int64_t replicated = 0; ///< how many of the last sizes cut nothing
};

class Scanner {
public:
  explicit Scanner(StringRef text) : text(text) {}
  bool take(StringRef word) {
    text = text.ltrim();
    return text.consume_front(word);
  }
  /// Numbers with commas between; false where there is none.
  bool takeNumbers(SmallVector<int64_t> &numbers) {
    do {
      uint32_t number = 0;
      text = text.ltrim();
      if (text.consumeInteger(10, number))
        return false;
      numbers.push_back(number);
    } while (take(","));
    return true;
  }
  /// `[2,4]`, with `open` and `close` around.
  bool takeList(StringRef open, StringRef close, SmallVector<int64_t> &list) {
    return take(open) && takeNumbers(list) && take(close);
  }
  /// Up to `close`, which is taken.
  bool takeUntil(StringRef close, StringRef &inside) {
    size_t at = text.find(close);
    if (at == StringRef::npos)
      return false;
    inside = text.take_front(at);
    text = text.drop_front(at + close.size());
    return true;
  }
  bool atEnd() { return text.trim().empty(); }

private:
  StringRef text;
};

} // namespace

static int64_t productOf(ArrayRef<int64_t> sizes) {
  int64_t product = 1;
  for (int64_t size : sizes)
    if (size < 1 || (product *= size) > (1 << 20))
      return 0;
  return product;
}

/// Device numbers of a row-major grid of `sizes`, read with its dimensions in
/// the order `order`.
static std::optional<SmallVector<int64_t>> transposed(ArrayRef<int64_t> sizes,
                                                      ArrayRef<int64_t> order) {
  int64_t count = productOf(sizes);
  SmallVector<int64_t> strides(sizes.size()), sorted(order);
  llvm::sort(sorted);
  if (count == 0 || !llvm::equal(sorted, llvm::seq<int64_t>(0, sizes.size())))
    return std::nullopt;
  int64_t stride = count;
  for (auto [size, each] : llvm::zip(sizes, strides))
    each = stride /= size;
  SmallVector<int64_t> devices(count);
  for (int64_t place = 0; place < count; ++place) {
    int64_t rest = place;
    for (int64_t dim : llvm::reverse(order)) {
      devices[place] += rest % sizes[dim] * strides[dim];
      rest /= sizes[dim];
    }
  }
  return devices;
}

/// Parses the text behind the tiles: the devices, and what the last sizes mean.
static bool parseDevices(Scanner &scanner, Tiling &tiling) {
  if (scanner.take("<=")) {
    SmallVector<int64_t> sizes, order;
    if (!scanner.takeList("[", "]", sizes))
      return false;
    if (scanner.take("T")) {
      if (!scanner.takeList("(", ")", order))
        return false;
    } else {
      order = llvm::to_vector(llvm::seq<int64_t>(0, sizes.size()));
    }
    std::optional<SmallVector<int64_t>> devices = transposed(sizes, order);
    if (!devices)
      return false;
    tiling.devices = *devices;
  } else if (!scanner.takeNumbers(tiling.devices)) {
    return false;
  }
  if (scanner.take("last_tile_dim_replicate")) {
    tiling.replicated = 1;
  } else if (scanner.take("last_tile_dims={")) {
    StringRef kinds;
    if (!scanner.takeUntil("}", kinds))
      return false;
    tiling.replicated = kinds.count(',') + 1;
  }
  return scanner.take("}") && scanner.atEnd();
}

static std::optional<Tiling> parseTiling(StringRef text) {
  Scanner scanner(text);
  Tiling tiling;
  if (!scanner.take("{"))
    return std::nullopt;
  if (scanner.take("replicated") || scanner.take("manual"))
    return scanner.take("}") && scanner.atEnd() ? std::optional(tiling)
                                                : std::nullopt;
  if (!scanner.take("devices=") || !scanner.takeList("[", "]", tiling.tiles) ||
      !parseDevices(scanner, tiling))
    return std::nullopt;
  int64_t count = tiling.devices.size();
  SmallVector<int64_t> sorted(tiling.devices);
  llvm::sort(sorted);
  if (productOf(tiling.tiles) != count ||
      !llvm::equal(sorted, llvm::seq<int64_t>(0, count)))
    return std::nullopt;
  return tiling;
}

int64_t devicesOfText(StringRef text) {
  std::optional<Tiling> tiling = parseTiling(text);
  if (!tiling) // `{maximal device=0}` has one, too
    return text.contains("devices=") ? 0 : 1;
  return tiling->tiles.empty() ? 1 : tiling->devices.size();
}

FailureOr<Parts> partsOfText(Operation *op, StringRef text, int64_t rank,
                             int64_t devices) {
  std::optional<Tiling> tiling = parseTiling(text);
  if (!tiling)
    return ir::emitUnsupported(op) << "has the sharding '" << text
                                   << "', which this version does not read";
  Parts parts = Parts::whole(devices, rank);
  if (tiling->tiles.empty())
    return parts;
  if (int64_t(tiling->tiles.size()) != rank + tiling->replicated ||
      int64_t(tiling->devices.size()) != devices)
    return op->emitOpError()
           << "has the sharding '" << text << "' for a tensor of rank " << rank
           << " on " << devices << " devices";
  for (int64_t dim = 0; dim < rank; ++dim)
    parts.counts[dim] = tiling->tiles[dim];
  for (auto [place, device] : llvm::enumerate(tiling->devices)) {
    int64_t rest = place;
    for (int64_t dim = tiling->tiles.size() - 1; dim >= 0; --dim) {
      if (dim < rank)
        parts.of[device][dim] = rest % tiling->tiles[dim];
      rest /= tiling->tiles[dim];
    }
  }
  return parts;
}

} // namespace mgpu::conversion
