# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training steps as pipelines, in named computations that --assign gives their meshes."""

N = 8  # every tensor is N x N
T = f"tensor<{N}x{N}xi32>"


class Pipeline:
    """`stages` on each of `meshes`, stage j on mesh j modulo their number, and `microbatches`; with
    `folded` there are two on each, and data goes through the meshes and back. All numbers are whole.
    With `fused`, the last stage goes forward and backward in one computation. `devices` is a number,
    or sizes of axes for each mesh."""

    def __init__(self, meshes, microbatches, stages=1, fused=False, devices=1, inference=False, folded=False):
        stages = 2 if folded else stages
        self.meshes, self.microbatches = meshes, microbatches
        self.stages = meshes * stages
        self.fused, self.inference = fused, inference
        self.devices = devices if isinstance(devices, list) else [[devices]] * meshes
        self.mesh_of = [min(j, 2 * meshes - 1 - j) if folded else j % meshes for j in range(self.stages)]
        self.repeats = [1] * self.stages  # how often a stage's forward work is done over
        self.assign = [word for j in range(self.stages) for word in ("--assign", f"f{j}=m{self.mesh_of[j]}")]
        self.arguments = [f"x{i}" for i in range(microbatches)] + [f"w{j}" for j in range(self.stages)]
        self.results = self.stages if not inference else microbatches

    def forward(self, j):
        """The result, and what backward work needs."""
        return [f'%y{j}, %h{j} = mpmd.named_computation<"f{j}"> (%x{j}, %w{j}) (%x: {T}, %w: {T}) {{',
                f"%lo = stablehlo.constant dense<-3> : {T}", f"%hi = stablehlo.constant dense<3> : {T}",
                *[f"%h_{k} = stablehlo.dot {'%x' if k == 0 else f'%h_{k - 1}'}, %w : ({T}, {T}) -> {T}"
                  for k in range(self.repeats[j] - 1)],
                f"%h = stablehlo.dot {'%x' if self.repeats[j] == 1 else f'%h_{self.repeats[j] - 2}'}, %w : "
                f"({T}, {T}) -> {T}",
                f"%y = stablehlo.clamp %lo, %h, %hi : {T}",
                f"mpmd.return %y, %h : {T}, {T}", f"}} : ({T}, {T}) -> ({T}, {T})"]

    def backward(self, j, given):
        return [f'%d{j}, %s{j} = mpmd.named_computation<"f{j}"(1)> (%h{j}, %w{j}, {given}, %g{j}) '
                f"(%h: {T}, %w: {T}, %d: {T}, %g: {T}) {{",
                f"%lo = stablehlo.constant dense<-3> : {T}", f"%hi = stablehlo.constant dense<3> : {T}",
                f"%u = stablehlo.transpose %w, dims = [1, 0] : ({T}) -> {T}",
                f"%v = stablehlo.dot %d, %u : ({T}, {T}) -> {T}",
                f"%dx = stablehlo.clamp %lo, %v, %hi : {T}",
                f"%dw = stablehlo.multiply %h, %d : {T}", f"%sum = stablehlo.add %g, %dw : {T}",
                f"mpmd.return %dx, %sum : {T}, {T}", f"}} : ({T}, {T}, {T}, {T}) -> ({T}, {T})"]

    def both(self, j):
        body = self.forward(j)[1:-2] + self.backward(j, "%y")[3:-2]
        body = [line.replace("%d,", "%y,").replace("%h, %d", "%h, %y") for line in body]
        return [f'%d{j}, %s{j} = mpmd.named_computation<"f{j}"> (%x{j}, %w{j}, %g{j}) (%x: {T}, %w: {T}, %g: {T}) {{',
                *body, f"mpmd.return %dx, %sum : {T}, {T}", f"}} : ({T}, {T}, {T}) -> ({T}, {T})"]

    def microbatch(self):
        lines, last = [], self.stages - 1
        for j in range(self.stages):
            if j:
                lines.append(f"%x{j} = mpmd.broadcast %y{j - 1} : {T}")
            lines += self.both(j) if self.fused and j == last else self.forward(j)
        if self.inference:
            return lines + [f"return %y{last} : {T}"]
        for j in reversed(range(self.stages)):
            if not (self.fused and j == last):
                lines += self.backward(j, f"%y{last}" if j == last else f"%d{j + 1}")
        sums = ", ".join(f"%s{j}" for j in range(self.stages))
        return lines + [f"return {sums} : {', '.join([T] * self.stages)}"]

    def text(self):
        axes = [", ".join(f'"x{a}"={size}' for a, size in enumerate(sizes)) for sizes in self.devices]
        topology = ", ".join(f'<"m{k}" : <[{axes[k]}]>>' for k in range(self.meshes))
        weights = [f"%w{j}" for j in range(self.stages)]
        sums = [] if self.inference else [f"%g{j}" for j in range(self.stages)]
        given = ["%x0"] + weights + sums
        gives = ", ".join([T] * (1 if self.inference else self.stages))
        attributes = "attributes {topology = #topology}"
        lines = [f"#topology = #mpmd.topology<{topology}>",
                 f"func.func private @microbatch({', '.join(f'{a}: {T}' for a in given)}) -> ({gives}) {attributes} {{",
                 *self.microbatch(), "}",
                 f"func.func @main({', '.join(f'%{a}: {T}' for a in self.arguments)}) -> "
                 f"({', '.join([T] * self.results)}) {attributes} {{",
                 f"%zero = stablehlo.constant dense<0> : {T}"]
        sums, outs = ["%zero"] * len(sums), []
        for i in range(self.microbatches):
            words = [f"%x{i}"] + weights + sums
            lines.append(f"%r{i}:{1 if self.inference else self.stages} = mpmd.call @microbatch({', '.join(words)}) "
                         f"{{call_counter = {i} : ui32}} : ({', '.join([T] * len(words))}) -> ({gives})")
            sums = [f"%r{i}#{j}" for j in range(len(sums))]
            outs.append(f"%r{i}#0")
        results = outs if self.inference else sums
        return "\n".join(lines + [f"return {', '.join(results)} : {', '.join([T] * len(results))}", "}", ""])
