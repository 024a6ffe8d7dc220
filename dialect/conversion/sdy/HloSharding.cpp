// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// XLA's text of a sharding: `{devices=[2,1,2]<=[2,2]T(1,0)
// last_tile_dim_replicate}`, `{replicated}`, `{manual}`.
#include "dialect/conversion/sdy/TensorParts.h"

#include "dialect/mgpu/Diagnostics.h"

namespace mgpu::conversion {

using namespace mlir;

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
