// Order book: market ticks scan all open orders for those to be triggered; a record is 256 bytes.
package main

import "fmt"

type order struct {
	ID       uint64
	Customer [48]byte
	Trigger  int32
	_        int32
	Note     [104]byte
	Address  [80]byte
	Side     uint32
	Qty      uint32
}

const nOrders = 120000
const ticks = 600

// feed parses the tick's FIX-like messages.
func feed(msg []byte, t int) uint64 {
	var h uint64
	for m := 0; m < msgs; m++ {
		tag, val, inVal := uint64(0), uint64(0), false
		for _, c := range msg {
			switch {
			case c == '=':
				inVal = true
			case c == '|':
				h = h*1099511628211 ^ (tag<<32 + val + uint64(t))
				tag, val, inVal = 0, 0, false
			case inVal:
				val = val*33 + uint64(c)
			default:
				tag = tag*10 + uint64(c-'0')
			}
		}
	}
	return h
}

const msgs = 8000

func main() {
	book := make([]order, nOrders)
	s := uint32(7)
	for i := range book {
		s = s*1664525 + 1013904223
		o := &book[i]
		o.ID = uint64(i)
		o.Trigger = int32(s>>8) % 1000000
		o.Qty = s % 100
		copy(o.Customer[:], "customer")
	}
	var fired, vol uint64
	msg := []byte("35=D|11=84412|55=ACME|54=1|38=1200|44=101.25|59=0|10=117|")
	var sums uint64
	for t := 0; t < ticks; t++ {
		sums = sums*31 + feed(msg, t)
		price := int32(t * 7919 % 1000000)
		for i := range book {
			d := book[i].Trigger - price
			if d >= 0 && d < 50 {
				fired++
				vol += uint64(book[i].Qty)
			}
		}
	}
	fmt.Println(fired, vol, sums)
}
