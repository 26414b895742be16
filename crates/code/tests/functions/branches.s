# Labels name the branches, and the loads that decide them.
	.intel_syntax noprefix
	.text
	.globl _start
_start:

# for (; p->hash; p++) if (p->hash == hash && p->key < *limit) return p;
probe:
1:
probe_hash:
	mov	rax, QWORD PTR [rdi]
	test	rax, rax
probe_empty:
	je	2f
	cmp	rax, rsi
probe_equal:
	jne	3f
probe_key:
	mov	rcx, QWORD PTR 8[rdi]
probe_limit:
	cmp	rcx, QWORD PTR [rdx]
probe_less:
	jl	2f
3:
	add	rdi, 48
	jmp	1b
2:
	ret

# for (i = 0; i < n; i++) s += a[i];
sum:
	lea	rsi, [rdi+rsi*8]
1:
	add	rcx, QWORD PTR [rdi]
	add	rdi, 8
	cmp	rdi, rsi
sum_again:
	jne	1b
	mov	rax, rcx
	ret

# goto *table[*p];
dispatch:
dispatch_code:
	movzx	eax, BYTE PTR [rdi]
dispatch_jump:
	jmp	QWORD PTR [rsi+rax*8]

# p->call();
method:
method_table:
	mov	rax, QWORD PTR [rdi]
method_entry:
	mov	rax, QWORD PTR 16[rax]
method_call:
	call	rax
	ret
