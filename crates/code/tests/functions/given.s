# Loops within loops. Labels name the loads of the test.
	.intel_syntax noprefix
	.text
	.globl _start
_start:

# do { sum = 0; for (t = 0; t < 8; t++) sum ^= table[t * 512 + (state >> 8 * t) % 32]; state = sum; } while (--n);
# No load before the last turn of the loop within forms the next state's first address.
checksum:
1:
	xor	ecx, ecx
	xor	edx, edx
	xor	r8d, r8d
checksum_turn:
	mov	rax, rdi
	shr	rax, cl
	add	ecx, 8
	and	eax, 31
	add	rax, rdx
	add	rdx, 512
checksum_load:
	xor	r8, QWORD PTR [r9+rax*8]
	cmp	rdx, 4096
	jne	checksum_turn
	mov	rdi, r8
	dec	rsi
	jne	1b
	ret

# do { for (child = 0; child < 8; child++) at += page->lowest[child] <= key; page = page->child[at]; } while (--levels);
search:
1:
	xor	eax, eax
	xor	edx, edx
search_lowest:
	cmp	QWORD PTR [rdi+rdx*8], rsi
	adc	eax, 0
	inc	edx
	cmp	edx, 8
	jne	search_lowest
search_child:
	mov	rdi, QWORD PTR [rdi+rax*8+64]
	dec	rcx
	jne	1b
	ret

# while (p) p = p->next: the address comes from the turn before.
list:
list_next:
	mov	rdi, QWORD PTR [rdi]
	test	rdi, rdi
	jne	list_next
	ret
