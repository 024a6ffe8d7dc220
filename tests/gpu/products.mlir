// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Products whose tensor-core form examples.py tries: whole tiles of f16, a batch of
// bf16 with edges, and rows of which none begins at 16 bytes; the first and the last
// with an addition, which is a part of their kernel where they are of such a form. Each
// follows a kernel, and the batch is followed by one that is a part of no other: a library's
// kernel may have edges of its own to its neighbours.
mgpu.device_config @config #mgpu.device_config<numDevices = 1>

func.func @main(%a: memref<256x192xf16>, %b: memref<192x256xf16>, %c: memref<256x256xf32>,
                %x: memref<3x70x40xbf16>, %y: memref<3x40x88xbf16>, %z: memref<3x70x88xbf16>,
                %p: memref<33x13xf16>, %q: memref<13x37xf16>, %r: memref<33x37xf32>) {
  %cm1 = arith.constant -1 : index
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %c70 = arith.constant 70 : index
  %c88 = arith.constant 88 : index
  %host = mgpu.get_device %cm1 : !mgpu.device
  %d = mgpu.get_device %c0 : !mgpu.device
  %da = mgpu.alloc %d : !mgpu.device -> memref<256x192xf16>
  %db = mgpu.alloc %d : !mgpu.device -> memref<192x256xf16>
  %dc = mgpu.alloc %d : !mgpu.device -> memref<256x256xf32>
  %dx = mgpu.alloc %d : !mgpu.device -> memref<3x70x40xbf16>
  %dy = mgpu.alloc %d : !mgpu.device -> memref<3x40x88xbf16>
  %dz = mgpu.alloc %d : !mgpu.device -> memref<3x70x88xbf16>
  %dp = mgpu.alloc %d : !mgpu.device -> memref<33x13xf16>
  %dq = mgpu.alloc %d : !mgpu.device -> memref<13x37xf16>
  %dr = mgpu.alloc %d : !mgpu.device -> memref<33x37xf32>
  mgpu.memcpy %da, %a, %d, %host : memref<256x192xf16>, memref<256x192xf16>, !mgpu.device, !mgpu.device
  mgpu.memcpy %db, %b, %d, %host : memref<192x256xf16>, memref<192x256xf16>, !mgpu.device, !mgpu.device
  mgpu.memcpy %dc, %c, %d, %host : memref<256x256xf32>, memref<256x256xf32>, !mgpu.device, !mgpu.device
  mgpu.memcpy %dx, %x, %d, %host : memref<3x70x40xbf16>, memref<3x70x40xbf16>, !mgpu.device, !mgpu.device
  mgpu.memcpy %dy, %y, %d, %host : memref<3x40x88xbf16>, memref<3x40x88xbf16>, !mgpu.device, !mgpu.device
  mgpu.memcpy %dz, %z, %d, %host : memref<3x70x88xbf16>, memref<3x70x88xbf16>, !mgpu.device, !mgpu.device
  mgpu.memcpy %dp, %p, %d, %host : memref<33x13xf16>, memref<33x13xf16>, !mgpu.device, !mgpu.device
  mgpu.memcpy %dq, %q, %d, %host : memref<13x37xf16>, memref<13x37xf16>, !mgpu.device, !mgpu.device
  mgpu.memcpy %dr, %r, %d, %host : memref<33x37xf32>, memref<33x37xf32>, !mgpu.device, !mgpu.device
  linalg.add ins(%da, %da : memref<256x192xf16>, memref<256x192xf16>) outs(%da : memref<256x192xf16>)
  linalg.add ins(%dx, %dx : memref<3x70x40xbf16>, memref<3x70x40xbf16>) outs(%dx : memref<3x70x40xbf16>)
  linalg.add ins(%dp, %dp : memref<33x13xf16>, memref<33x13xf16>) outs(%dp : memref<33x13xf16>)
  linalg.matmul ins(%da, %db : memref<256x192xf16>, memref<192x256xf16>) outs(%dc : memref<256x256xf32>)
  linalg.add ins(%dc, %dc : memref<256x256xf32>, memref<256x256xf32>) outs(%dc : memref<256x256xf32>)
  linalg.batch_matmul ins(%dx, %dy : memref<3x70x40xbf16>, memref<3x40x88xbf16>) outs(%dz : memref<3x70x88xbf16>)
  mgpu.launch %d grid(%c70, %c3) block(%c88) {
    %batch = gpu.block_id y
    %row = gpu.block_id x
    %column = gpu.thread_id x
    %product = memref.load %dz[%batch, %row, %column] : memref<3x70x88xbf16>
    %twice = arith.addf %product, %product : bf16
    memref.store %twice, %dz[%batch, %row, %column] : memref<3x70x88xbf16>
  }
  linalg.matmul ins(%dp, %dq : memref<33x13xf16>, memref<13x37xf16>) outs(%dr : memref<33x37xf32>)
  linalg.add ins(%dr, %dr : memref<33x37xf32>, memref<33x37xf32>) outs(%dr : memref<33x37xf32>)
  mgpu.memcpy %c, %dc, %host, %d : memref<256x256xf32>, memref<256x256xf32>, !mgpu.device, !mgpu.device
  mgpu.memcpy %z, %dz, %host, %d : memref<3x70x88xbf16>, memref<3x70x88xbf16>, !mgpu.device, !mgpu.device
  mgpu.memcpy %r, %dr, %host, %d : memref<33x37xf32>, memref<33x37xf32>, !mgpu.device, !mgpu.device
  return
}
