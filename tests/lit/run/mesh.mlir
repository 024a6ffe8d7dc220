// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A program that names no devices is cut over those that the command gives it,
// and computes the same.
// RUN: mgpu-tune run %s --random --out r0=%t.a0.npy --out r1=%t.a1.npy
// RUN: mgpu-tune run %s --mesh data=4 --shard x=data --random --out r0=%t.b0.npy --out r1=%t.b1.npy
// RUN: mgpu-tune run %s --mesh data=2,model=3 --shard x=data --shard '*=-,model' --random --out r0=%t.c0.npy --out r1=%t.c1.npy
// RUN: mgpu-tune run %s --mesh data=2,model=2 --shard x=model+data,- --random --out r0=%t.d0.npy --out r1=%t.d1.npy
// RUN: cmp %t.a0.npy %t.b0.npy && cmp %t.a0.npy %t.c0.npy && cmp %t.a0.npy %t.d0.npy
// RUN: cmp %t.a1.npy %t.b1.npy && cmp %t.a1.npy %t.c1.npy && cmp %t.a1.npy %t.d1.npy
// RUN: mgpu-tune check %s --mesh data=4 --shard x=data | FileCheck %s --check-prefix=FOUR
// FOUR: 4 devices

// A name goes before a pattern, wherever it stands.
// RUN: mgpu-tune check %s --mesh data=2,model=3 --shard x=data --shard '*=-,model' --sharding-report | FileCheck %s --check-prefix=CUT
// RUN: mgpu-tune check %s --mesh data=2,model=3 --shard '*=-,model' --shard x=data --sharding-report | FileCheck %s --check-prefix=CUT
// CUT: %w at {{.*}}: tensor<6x12xi32> split {{\[\[\], \[1\]\]}},
// CUT: %x at {{.*}}: tensor<8x6xi32> split {{\[\[0\], \[\]\]}},

// RUN: not mgpu-tune check %s --shard x=data 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: --shard: the program has no mesh that could cut its arguments: give one, --mesh data=4
// RUN: not mgpu-tune check %s --mesh data=4 --shard ww=data 2>&1 | FileCheck %s --check-prefix=NAME
// NAME: --shard ww=data: no argument that is a tensor has that name
// RUN: not mgpu-tune check %s --mesh data=4 --shard x=dat 2>&1 | FileCheck %s --check-prefix=AXIS
// AXIS: --shard x=dat: the program's mesh has no axis 'dat'
// RUN: not mgpu-tune check %s --mesh data=4 --shard x=data,data 2>&1 | FileCheck %s --check-prefix=TWICE
// TWICE: --shard x=data,data: axis 'data' cuts it twice
// RUN: not mgpu-tune check %s --mesh data=4 --shard x=-,-,data 2>&1 | FileCheck %s --check-prefix=RANK
// RANK: --shard x=-,-,data: the argument has 2 dimensions
// RUN: not mgpu-tune check %s --mesh data 2>&1 | FileCheck %s --check-prefix=FORM
// FORM: --mesh data: it must be axes and their sizes, as data=4,model=2
// RUN: not mgpu-tune check %s --mesh a=300,b=300 2>&1 | FileCheck %s --check-prefix=MANY
// MANY: --mesh a=300,b=300: it has more than 65536 devices
// RUN: not mgpu-tune check %S/../../../examples/mlp/mlp.mlir --mesh data=2 2>&1 | FileCheck %s --check-prefix=BUFFERS
// BUFFERS: --mesh data=2: it is for functions over tensors
// RUN: not mgpu-tune check %s --mesh data=70000 2>&1 | FileCheck %s --check-prefix=MANY70
// MANY70: --mesh data=70000: it has more than 65536 devices
// RUN: not mgpu-tune check %s --mesh data=2 2>&1 | FileCheck %s --check-prefix=WHOLE
// WHOLE: --mesh data=2: nothing is cut over it: say how arguments are, --shard NAME=AXIS
// RUN: not mgpu-tune check %s --mesh data=2 --shard x=- --shard x=data 2>&1 | FileCheck %s --check-prefix=AGAIN
// AGAIN: --shard x=data: it is given twice
// RUN: not mgpu-tune check %S/no-elements-cut.mlir --mesh data=2 --shard a=data 2>&1 | FileCheck %s --check-prefix=OWN
// OWN: --mesh data=2: the program names its devices by itself
// A pattern leaves alone what has too few dimensions.
// RUN: mgpu-tune check %s --mesh data=4 --shard x=data --shard '*=-,-,data' | FileCheck %s --check-prefix=FOUR
func.func @main(%x: tensor<8x6xi32>, %w: tensor<6x12xi32>) -> (tensor<8x12xi32>, tensor<12xi32>) {
  %z = stablehlo.constant dense<3> : tensor<i32>
  %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x6xi32>, tensor<6x12xi32>) -> tensor<8x12xi32>
  %s = stablehlo.reduce(%p init: %z) applies stablehlo.add across dimensions = [0] : (tensor<8x12xi32>, tensor<i32>) -> tensor<12xi32>
  return %p, %s : tensor<8x12xi32>, tensor<12xi32>
}
