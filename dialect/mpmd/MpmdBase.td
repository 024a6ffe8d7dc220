// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_MPMD_MPMDBASE_TD
#define MGPU_DIALECT_MPMD_MPMDBASE_TD

include "dialect/sdy/SdyBase.td"
include "mlir/IR/BuiltinTypeInterfaces.td"
include "mlir/IR/EnumAttr.td"

def Mpmd_Dialect : Dialect {
  let name = "mpmd";
  let cppNamespace = "::mgpu::mpmd";
  let summary = "Programs over several meshes, as JAX exports them";
  let description = [{
    A program over several meshes of devices: each mesh runs fragments, and
    values go from mesh to mesh by transfers. The `topology` attribute of a
    function names the meshes. A `!mpmd.mesh_tensor` is a tensor that is on one
    of them.

    A program comes in two forms. Before meshes are assigned, it computes with
    plain tensors, and marks parts by `mpmd.named_computation` and
    `mpmd.named_tensor`. After that, all work stands in `mpmd.fragment`.

    Example: mesh `m1` computes, mesh `m2` has the result.
    ```mlir
    !a = !mpmd.mesh_tensor<"m1", tensor<8x4xf32>, sharding=<@mesh, [{"x"}, {} ]>>
    !b = !mpmd.mesh_tensor<"m2", tensor<8x4xf32>>
    func.func @main(%x: !a) -> !b attributes {
        topology = #mpmd.topology<<"m1" : <["x"=2]>>, <"m2" : <["x"=2]>>>} {
      %0 = mpmd.fragment<mesh="m1", origin=["layer"]> (%x) (%t: tensor<8x4xf32>) {
        %2 = stablehlo.add %t, %t : tensor<8x4xf32>
        mpmd.return %2 : tensor<8x4xf32>
      } : (!a) -> !a
      %1 = mpmd.transfer %0 : (!a) -> !b
      return %1 : !b
    }
    ```
  }];
  let dependentDialects = ["::mgpu::sdy::SdyDialect"];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let extraClassDeclaration = [{
    void registerAttributes();
  }];
}

//===----------------------------------------------------------------------===//
// Meshes
//===----------------------------------------------------------------------===//

class Mpmd_Attr<string name, string attrMnemonic> : AttrDef<Mpmd_Dialect, name> {
  let mnemonic = attrMnemonic;
  let hasCustomAssemblyFormat = 1;
}

def Mpmd_NamedMeshAttr : Mpmd_Attr<"NamedMesh", "named_mesh"> {
  let summary = "A mesh and its name: `<\"m1\" : <[\"x\"=2]>>`";
  let parameters = (ins StringRefParameter<"the name">:$name,
                        AttrParameter<"::mgpu::sdy::MeshAttr", "">:$mesh);
}

def Mpmd_TopologyAttr : Mpmd_Attr<"Topology", "topology"> {
  let summary = "The meshes of a program";
  let description = [{
    Each mesh has devices of its own, numbered one after the other in the order
    of the list. It is the attribute `topology` of a function.

    Constraints, by the label that ends the message about each:
    - (topology_c1) each mesh has a name that no other one has.

    Example:
    ```mlir
    #mpmd.topology<<"m1" : <["x"=2, "y"=4]>>, <"m2" : <["z"=3]>>>
    ```
  }];
  let parameters = (ins ArrayRefParameter<"NamedMeshAttr">:$meshes);
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The mesh of this name; null where there is none.
    ::mgpu::sdy::MeshAttr find(::llvm::StringRef name) const;
  }];
}

//===----------------------------------------------------------------------===//
// Where things come from
//===----------------------------------------------------------------------===//

def Mpmd_UserOriginAttr : Mpmd_Attr<"UserOrigin", "user_origin"> {
  let summary = "The name of a computation in the user's program: `\"f\"(1)`";
  let description = [{
    The number says how often it was transposed: 1 for a backward pass. Without
    one it is 0.
  }];
  let parameters = (ins "::mlir::StringAttr":$userName,
                        DefaultValuedParameter<"int64_t", "0">:$transposeCount);
  let builders = [AttrBuilder<(ins "::llvm::StringRef":$userName,
                                   CArg<"int64_t", "0">:$transposeCount), [{
    return $_get($_ctxt, ::mlir::StringAttr::get($_ctxt, userName),
                 transposeCount);
  }]>];
}

def Mpmd_UserOrigins
    : TypedArrayAttrBase<Mpmd_UserOriginAttr, "array of origin infos">;

def Mpmd_OriginAttr : Mpmd_Attr<"Origin", "origin"> {
  let summary = "Why a value is on a mesh, in a word: `\"f1\"`";
  let parameters = (ins StringRefParameter<"the word">:$origin_label);
}

def Mpmd_MeshWithOriginsAttr
    : Mpmd_Attr<"MeshWithOrigins", "mesh_with_origins"> {
  let summary = "A mesh's name, and why it was taken: `\"m1\"[\"f1\"]`";
  let parameters = (ins StringRefParameter<"the mesh">:$mesh_name,
                        ArrayRefParameter<"OriginAttr">:$origins);
}

def Mpmd_MeshesWithOriginsAttr
    : Mpmd_Attr<"MeshesWithOrigins", "meshes_with_origins"> {
  let summary = "Some meshes, and why: `<\"m1\"[\"f1\"], \"m2\">`";
  let description = [{
    Operations have them as `mpmd.use_set` and `mpmd.src_set`: the meshes that
    use a value, and those that can make it.

    Constraints, by the label that ends the message about each:
    - (meshes_with_origins_c1) these attributes of an operation are such lists.
  }];
  let parameters = (ins ArrayRefParameter<"MeshWithOriginsAttr">:$value);
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

def Mpmd_ReductionType
    : I32EnumAttr<"ReductionType", "How values of several meshes are combined",
        [I32EnumAttrCase<"kNone", 0, "none">, I32EnumAttrCase<"kAdd", 1, "add">,
         I32EnumAttrCase<"kMax", 2, "max">, I32EnumAttrCase<"kMin", 3, "min">,
         I32EnumAttrCase<"kMul", 4, "mul">, I32EnumAttrCase<"kOr", 5, "or">,
         I32EnumAttrCase<"kAnd", 6, "and">]> {
  let cppNamespace = "::mgpu::mpmd";
  let genSpecializedAttr = 0;
}

def Mpmd_ReductionAttr : AttrDef<Mpmd_Dialect, "Reduction"> {
  let mnemonic = "reduction";
  let summary = "How values of several meshes are combined: `<add>`";
  let parameters = (ins EnumParameter<Mpmd_ReductionType>:$reduction_type);
  let assemblyFormat = "`<` $reduction_type `>`";
}

//===----------------------------------------------------------------------===//
// Work of a pipeline
//===----------------------------------------------------------------------===//

def Mpmd_WorkKind
    : I32EnumAttr<"WorkKind", "What is done with a microbatch",
        [I32EnumAttrCase<"kForward", 0, "forward">,
         I32EnumAttrCase<"kBackward", 1, "backward">,
         I32EnumAttrCase<"kWeights", 2, "weights">]> {
  let cppNamespace = "::mgpu::mpmd";
  let genSpecializedAttr = 0;
}

def Mpmd_WorkAttr : AttrDef<Mpmd_Dialect, "Work"> {
  let mnemonic = "work";
  let summary = "Which work of a pipeline an operation belongs to";
  let description = [{
    Locations of operations have it after fragments were converted. Stages are
    counted from 0 among those of the mesh. Of two works that run as one, `half`
    is 1 in the first and 2 in the second: their launches have no order.

    Example:
    ```mlir
    #mpmd.work<forward, microbatch = 3, stage = 0>
    ```
  }];
  let parameters = (ins EnumParameter<Mpmd_WorkKind>:$kind,
                        "int64_t":$microbatch, "int64_t":$stage,
                        DefaultValuedParameter<"int64_t", "0">:$half);
  let assemblyFormat = [{
    `<` $kind `,` `microbatch` `=` $microbatch `,` `stage` `=` $stage
    (`,` `half` `=` $half^)? `>`
  }];
}

//===----------------------------------------------------------------------===//
// Tensors on a mesh
//===----------------------------------------------------------------------===//

def Mpmd_MeshTensorType
    : TypeDef<Mpmd_Dialect, "MeshTensor", [ShapedTypeInterface]> {
  let mnemonic = "mesh_tensor";
  let summary = "A tensor on a mesh";
  let description = [{
    The tensor's shape is the global one. `sharding` says how the mesh's devices
    share it; without one, each device has all of it. `memory_kind` says that it
    is in the memory of the devices, `"device"`, or of their hosts,
    `"pinned_host"`.

    Constraints, by the label that ends the message about each. They are of
    operands and results of this dialect's operations:
    - (mesh_tensor_c1) the function has a `topology`, and the mesh is one of it;
    - (mesh_tensor_c2) the sharding has a list for each dimension, names axes of
      the mesh, and none twice;
    - (mesh_tensor_c3) each dimension can be cut into parts of the same size.

    Example:
    ```mlir
    !mpmd.mesh_tensor<"m1", tensor<12x16xf32>, sharding=<@mesh, [{"x"}, {} ]>,
                      memory_kind="pinned_host">
    ```
  }];
  let parameters = (ins StringRefParameter<"the mesh">:$mesh_name,
      "::mlir::RankedTensorType":$ranked_tensor_type,
      OptionalParameter<"::mgpu::sdy::TensorShardingAttr">:$sharding,
      OptionalParameter<"::mlir::StringAttr">:$memory_kind);
  let builders = [
    TypeBuilder<(ins "::llvm::StringRef":$meshName,
        "::mlir::RankedTensorType":$type,
        CArg<"::mgpu::sdy::TensorShardingAttr", "{}">:$sharding), [{
      return $_get($_ctxt, meshName, type, sharding, ::mlir::StringAttr());
    }]>];
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    ::mlir::RankedTensorType getGlobalTensorType() const {
      return getRankedTensorType();
    }
    /// The type of the part of it that a device of `mesh`, its mesh, holds;
    /// null where the sharding does not suit the mesh.
    ::mlir::RankedTensorType getLocalTensorType(::mgpu::sdy::MeshAttr mesh) const;
    /// Whether each device has all of it.
    bool isFullyReplicated() const;
    bool isOnHost() const;

    // Members that a shaped type must have.
    ::mlir::ShapedType cloneWith(
        ::std::optional<::llvm::ArrayRef<int64_t>> shape,
        ::mlir::Type elementType) const;
    ::mlir::Type getElementType() const;
    bool hasRank() const { return true; }
    ::llvm::ArrayRef<int64_t> getShape() const;
  }];
}

#endif // MGPU_DIALECT_MPMD_MPMDBASE_TD
