// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Kernels given as files: what can be wrong shows at the launch.
// RUN: split-file %s %t
// RUN: mkdir -p %t/folder && cp %t/k.cu %t/folder/deep.cu
// RUN: cat %S/Inputs/prologue.mlir %t/fine > %t/fine.mlir && mgpu-tune check %t/fine.mlir | FileCheck %s --check-prefix=FINE
// RUN: cat %S/Inputs/prologue.mlir %t/missing > %t/missing.mlir && not mgpu-tune check %t/missing.mlir 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: cat %S/Inputs/prologue.mlir %t/entry > %t/entry.mlir && not mgpu-tune check %t/entry.mlir 2>&1 | FileCheck %s --check-prefix=ENTRY
// RUN: cat %S/Inputs/prologue.mlir %t/count > %t/count.mlir && not mgpu-tune check %t/count.mlir 2>&1 | FileCheck %s --check-prefix=COUNT
// RUN: cat %S/Inputs/prologue.mlir %t/races > %t/races.mlir && mgpu-tune check %t/races.mlir 2>&1 | FileCheck %s --check-prefix=RACES

// FINE: fine.mlir: ok: {{.*}} 2 kernels
// MISSING: missing.mlir:{{[0-9]+}}:3: error: the launch cannot read its kernel: {{.*}}none.cu
// ENTRY: entry.mlir:{{[0-9]+}}:3: error: the launch names the kernel 'commented', but '{{.*}}k.cu' has none: declare it extern "C" __global__ there
// COUNT: count.mlir:{{[0-9]+}}:3: error: the launch gives 1 argument, but the kernel 'scale' in '{{.*}}k.cu' takes 2
// RACES: warning:
// RACES: the earlier use is here

//--- k.cu
// __global__ void commented(float *x, int n)
#define PAIR(a, b) a
template <class T, int N> struct Box { T items[N]; };
extern "C" __global__ void __launch_bounds__(64, 2)
scale(Box<float, 2> *x, /* of it, */ long long n) {
  const char c = '"';
  if (threadIdx.x < n)
    x[0].items[0] = c;
}
extern "C" __global__ void nothing(void) {}
//--- fine
  mgpu.launch %d0 args(%a, %c1 : memref<64xf32>, index) grid(%c1) block(%c1) attributes {source = "folder/deep.cu", entry = "scale"}
  mgpu.launch %d0 args(%a, %c1 : memref<64xf32>, index) grid(%c1) block(%c1) attributes {source = "folder/deep.cu", entry = "scale"}
  mgpu.launch %d0 grid(%c1) block(%c1) attributes {source = "k.cu", entry = "nothing"}
  return
}
//--- missing
  mgpu.launch %d0 grid(%c1) block(%c1) attributes {source = "none.cu", entry = "k"}
  return
}
//--- entry
  mgpu.launch %d0 grid(%c1) block(%c1) attributes {source = "k.cu", entry = "commented"}
  return
}
//--- count
  mgpu.launch %d0 args(%a : memref<64xf32>) grid(%c1) block(%c1) attributes {source = "k.cu", entry = "scale"}
  return
}
//--- races
  mgpu.launch %d0 args(%a, %c1 : memref<64xf32>, index) grid(%c1) block(%c1) stream %s0 attributes {source = "k.cu", entry = "scale"}
  mgpu.launch %d0 args(%a, %c1 : memref<64xf32>, index) grid(%c1) block(%c1) stream %t0 attributes {source = "k.cu", entry = "scale", writes = [0], reads = []}
  return
}
