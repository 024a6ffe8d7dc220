// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What cannot be captured, and what the command line must say.
// RUN: split-file %s %t
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/hostcode | FileCheck %s --check-prefix=HOSTCODE
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/entry --entry other | FileCheck %s --check-prefix=ENTRY
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/role --role x=loud | FileCheck %s --check-prefix=ROLE
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/norole --role q=input | FileCheck %s --check-prefix=NOROLE
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/subview | FileCheck %s --check-prefix=SUBVIEW
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/dynsubview | FileCheck %s --check-prefix=DYNSUBVIEW
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/outside | FileCheck %s --check-prefix=OUTSIDE
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/guardedoutside | FileCheck %s --check-prefix=GUARDEDOUTSIDE
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/grid | FileCheck %s --check-prefix=GRID
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/block | FileCheck %s --check-prefix=BLOCK
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/limit --node-limit 2 | FileCheck %s --check-prefix=LIMIT
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/recursion | FileCheck %s --check-prefix=RECURSION
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/json --json | FileCheck %s --check-prefix=JSON
// RUN: sh %S/Inputs/check.sh mgpu-tune %S/Inputs/prologue.mlir %t/jsonok --json | FileCheck %s --check-prefix=JSONOK

// HOSTCODE: error: {{.*}}host code may not touch memory itself
// HOSTCODE: exit=5
// ENTRY: error: {{.*}}no function @other with a body; name one with --entry
// ENTRY: exit=2
// ROLE: error: {{.*}}argument 'x' cannot have role 'loud'
// ROLE: exit=2
// NOROLE: error: {{.*}}@main has no argument 'q'
// NOROLE: exit=2
// SUBVIEW: error: {{.*}}slice along dimension 0 runs out-of-bounds: 71 >= 64
// SUBVIEW: exit=1
// DYNSUBVIEW: error: {{.*}}dimension 0, 1 elements from 65 by steps of 1, leaves the 64 of its source
// DYNSUBVIEW: exit=1
// OUTSIDE: error: {{.*}}index 0 runs from 0 to 64, outside the 64 of the memref
// OUTSIDE: note: in this launch of 1 blocks of 65 threads
// OUTSIDE: exit=1
// GUARDEDOUTSIDE-NOT: {{race|warning|error}}
// GUARDEDOUTSIDE: exit=0
// GRID: error: {{.*}}a grid of 1 x 65536 x 1 blocks; CUDA allows at most 2147483647 along x and 65535 along y and z
// GRID: exit=1
// BLOCK: error: {{.*}}a block of 2048 x 1 x 1 threads; CUDA allows at most 1024
// BLOCK: exit=1
// LIMIT: error: {{.*}}the unrolled program has more than 2 nodes; raise --node-limit
// LIMIT: exit=1
// RECURSION: error: {{.*}}calls 'main' from within itself; recursion cannot be captured
// RECURSION: exit=5
// JSON: "location": "<stdin>:25:3"
// JSON: "severity": "error"
// JSON: "text": "race on buffer 'a'
// JSON: "severity": "note"
// JSON: "ok": false
// JSON: exit=1
// JSONOK: "messages": []
// JSONOK: "nodes": 1
// JSONOK: "ok": true
// JSONOK: exit=0

//--- hostcode
  %v = memref.load %x[%c0] : memref<64xf32>
  return
}
//--- entry
  return
}
//--- role
  return
}
//--- norole
  return
}
//--- subview
  %v = memref.subview %a[40] [32] [1] : memref<64xf32> to memref<32xf32, strided<[1], offset: 40>>
  return
}
//--- dynsubview
  %off = arith.addi %c64, %c1 : index
  %v = memref.subview %a[%off] [1] [1] : memref<64xf32> to memref<1xf32, strided<[1], offset: ?>>
  return
}
//--- outside
  %c65 = arith.constant 65 : index
  mgpu.launch %d0 grid(%c1) block(%c65) stream %s0 {
    %i = gpu.thread_id x
    memref.store %one, %a[%i] : memref<64xf32>
  }
  return
}
//--- guardedoutside
  %c65 = arith.constant 65 : index
  mgpu.launch %d0 grid(%c1) block(%c65) stream %s0 {
    %i = gpu.thread_id x
    %in = arith.cmpi ult, %i, %c1 : index
    scf.if %in {
      memref.store %one, %a[%i] : memref<64xf32>
    }
  }
  return
}
//--- grid
  %k = arith.constant 65536 : index
  mgpu.launch %d0 grid(%c1, %k) block(%c1) stream %s0 {
    memref.store %one, %a[%c0] : memref<64xf32>
  }
  return
}
//--- block
  %k = arith.constant 2048 : index
  mgpu.launch %d0 grid(%c1) block(%k) stream %s0 {
    %i = gpu.thread_id x
    memref.store %one, %a[%i] : memref<64xf32>
  }
  return
}
//--- limit
  mgpu.launch %d0 grid(%c1) block(%c64) stream %s0 {
    %i = gpu.thread_id x
    memref.store %one, %a[%i] : memref<64xf32>
  }
  mgpu.launch %d0 grid(%c1) block(%c64) stream %s0 {
    %i = gpu.thread_id x
    memref.store %one, %a[%i] : memref<64xf32>
  }
  mgpu.launch %d0 grid(%c1) block(%c64) stream %s0 {
    %i = gpu.thread_id x
    memref.store %one, %a[%i] : memref<64xf32>
  }
  mgpu.launch %d0 grid(%c1) block(%c64) stream %s0 {
    %i = gpu.thread_id x
    memref.store %one, %a[%i] : memref<64xf32>
  }
  return
}
//--- recursion
  func.call @main(%x) : (memref<64xf32>) -> ()
  return
}
//--- json
  mgpu.launch %d0 grid(%c1) block(%c64) stream %s0 {
    %i = gpu.thread_id x
    memref.store %one, %a[%i] : memref<64xf32>
  }
  mgpu.launch %d0 grid(%c1) block(%c64) stream %t0 {
    %i = gpu.thread_id x
    memref.store %one, %a[%i] : memref<64xf32>
  }
  return
}
//--- jsonok
  mgpu.launch %d0 grid(%c1) block(%c64) stream %s0 {
    %i = gpu.thread_id x
    memref.store %one, %a[%i] : memref<64xf32>
  }
  return
}
