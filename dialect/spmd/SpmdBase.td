// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_SPMD_SPMDBASE_TD
#define MGPU_DIALECT_SPMD_SPMDBASE_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"

def Spmd_Dialect : Dialect {
  let name = "spmd";
  let cppNamespace = "::mgpu::spmd";
  let summary = "One tensor program that every device runs on its own shards";
  let description = [{
    A function over tensors is one program that N devices run, each on its own
    shard of the data (SPMD). The arguments and results of the entry function
    are whole tensors; a `#spmd.layout` on each says which part a device holds.
    `spmd.full_to_shard` and `spmd.shard_to_full` go from the whole to the shard
    and back. All other values are of one device. Devices exchange data through
    the collective operations below, which name groups of devices. Code that
    some of the devices run stands in `spmd.on`.

    Collectives are destination-style operations, as those of `linalg`: they
    write to `outs`, and on tensors they return it. They take tensors, and
    memrefs after bufferization.

    Devices are numbered from 0. `groups` is a list of groups of the same size,
    and each device is in one of them; without it, all devices are one group.
    The position of a device in its group is its rank.

    Example: each of four devices holds 16 rows of `x`, and the sum over all
    rows is on every device.
    ```mlir
    #rows = #spmd.layout<mesh = [4], split = [[0], []]>
    func.func @main(%x: tensor<64x32xf32> {spmd.layout = #rows})
        -> tensor<32xf32> {
      %zero = arith.constant 0.0 : f32
      %mine = spmd.full_to_shard %x : tensor<64x32xf32> to tensor<16x32xf32>
      %empty = tensor.empty() : tensor<32xf32>
      %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<32xf32>)
          -> tensor<32xf32>
      %part = linalg.reduce { arith.addf } ins(%mine : tensor<16x32xf32>)
          outs(%init : tensor<32xf32>) dimensions = [0]
      %sum = spmd.all_reduce sum ins(%part : tensor<32xf32>)
          outs(%part : tensor<32xf32>) -> tensor<32xf32>
      return %sum : tensor<32xf32>
    }
    ```
  }];
  let dependentDialects = ["::mgpu::ir::MgpuDialect"];
  let useDefaultAttributePrinterParser = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let extraClassDeclaration = [{
    void registerAttributes();
  }];
}

def Spmd_LayoutAttr : AttrDef<Spmd_Dialect, "Layout"> {
  let mnemonic = "layout";
  let summary = "Which part of a whole tensor each device holds";
  let description = [{
    Devices form a mesh of the sizes `mesh`; device numbers are row-major in it.
    `split` has a list of mesh axes for each dimension of the tensor. The
    dimension is cut into as many parts as these axes have devices, the first
    axis outermost. Parts have the same size; where they cannot, the first ones
    have one element more. Devices that differ only along other axes hold the
    same part (replicas). The mesh is all devices of the program; with `first`
    it is those from that number on, and the others hold nothing.

    Parts of any sizes are cut by `offsets`: it has a list for each dimension,
    which says where each part begins and, last, where the dimension ends. A
    dimension with an empty list is cut as above.

    With `halos`, devices hold more than their part: it has a list for each
    dimension, which is empty or says how many elements before the part and
    behind it are there too, as far as the tensor reaches.

    Example: on a mesh of 2 x 4 devices, rows are cut in two and columns are
    whole, so each part has four replicas.
    ```mlir
    #spmd.layout<mesh = [2, 4], split = [[0], []]>
    ```
    Devices 4 and 5 hold a half each.
    ```mlir
    #spmd.layout<mesh = [2], first = 4, split = [[0], []]>
    ```
    Device 0 holds 3 of 64 rows, device 1 the others.
    ```mlir
    #spmd.layout<mesh = [2], split = [[0], []], offsets = [[0, 3, 64], []]>
    ```
    Each device holds the row behind its part too.
    ```mlir
    #spmd.layout<mesh = [2], split = [[0], []], halos = [[0, 1], []]>
    ```

    Constraints, by the label that ends the message about each:
    - (layout_c1) sizes of the mesh are at least 1, and the number of the last
      device is below 65536;
    - (layout_c2) axes named in `split` are axes of the mesh;
    - (layout_c3) no axis is named twice;
    - (layout_c4) an argument or result with a layout is a ranked tensor of
      static shape;
    - (layout_c5) `split` has a list for each of its dimensions;
    - (layout_c6) each dimension has at least as many elements as parts;
    - (layout_c7) of this dialect, arguments and results of functions have
      `spmd.layout`, a `#spmd.layout`, and results `spmd.alias`, and no other
      attribute;
    - (layout_c8) `spmd.alias` is on a tensor, and the number of an argument;
    - (layout_c9) that argument has the type and the layout of the result;
    - (layout_c10) no other result is the next state of that argument;
    - (layout_c11) `offsets` has as many lists as `split`; one that is not empty
      begins with 0, grows, and has a number more than the dimension has parts;
    - (layout_c12) its last number is the size of the dimension;
    - (layout_c13) `halos` has as many lists as `split`; one that is not empty
      has two numbers, which are not negative;
    - (layout_c14) arguments and results of functions have no `halos`.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$mesh,
      ArrayRefParameter<"::mlir::DenseI64ArrayAttr">:$split,
      OptionalParameter<"::std::optional<int64_t>">:$first,
      OptionalArrayRefParameter<"::mlir::DenseI64ArrayAttr">:$offsets,
      OptionalArrayRefParameter<"::mlir::DenseI64ArrayAttr">:$halos);
  let builders = [AttrBuilder<(ins "::llvm::ArrayRef<int64_t>":$mesh,
      "::llvm::ArrayRef<::mlir::DenseI64ArrayAttr>":$split,
      CArg<"::std::optional<int64_t>", "std::nullopt">:$first,
      CArg<"::llvm::ArrayRef<::mlir::DenseI64ArrayAttr>", "{}">:$offsets), [{
    return $_get($_ctxt, mesh, split, first, offsets,
                 ::llvm::ArrayRef<::mlir::DenseI64ArrayAttr>());
  }]>];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The number of devices of the mesh.
    int64_t numDevices() const;
    int64_t firstDevice() const { return getFirst().value_or(0); }
    /// One more than the number of the last device of the mesh.
    int64_t endDevice() const { return firstDevice() + numDevices(); }
    bool holds(int64_t device) const {
      return device >= firstDevice() && device < endDevice();
    }
    /// Into how many parts dimension `dim` is cut.
    int64_t parts(unsigned dim) const;
    /// Which part of dimension `dim` `device` of the mesh holds, from 0.
    int64_t partOf(unsigned dim, int64_t device) const;
    /// Where the parts of dimension `dim`, which has `size` elements, begin, and
    /// where the last one ends.
    ::llvm::SmallVector<int64_t> boundsOf(unsigned dim, int64_t size) const;
    /// Where what devices hold of each part begins and ends: the part, with its
    /// halo.
    ::llvm::SmallVector<std::pair<int64_t, int64_t>>
    rangesOf(unsigned dim, int64_t size) const;
    /// Whether a tensor of shape `full` can be cut so.
    bool fits(::llvm::ArrayRef<int64_t> full) const;
    /// This layout, for the devices from `device` on.
    LayoutAttr startingAt(int64_t device) const;
    /// The shape of a shard of a tensor of shape `full`: dynamic where devices
    /// have parts of different sizes.
    ::llvm::SmallVector<int64_t> shardShape(::llvm::ArrayRef<int64_t> full) const;
    /// The shape of the shard of `device`.
    ::llvm::SmallVector<int64_t> shardShape(::llvm::ArrayRef<int64_t> full,
                                            int64_t device) const;
    /// Where the shard of `device` begins in a tensor of shape `full`.
    ::llvm::SmallVector<int64_t> shardOffsets(::llvm::ArrayRef<int64_t> full,
                                              int64_t device) const;
  }];
}

#endif // MGPU_DIALECT_SPMD_SPMDBASE_TD
