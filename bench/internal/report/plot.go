package report

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"os"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/holdfast-go/holdfast/bench/internal/cases"
	"github.com/holdfast-go/holdfast/bench/internal/measure"
	"github.com/holdfast-go/holdfast/bench/internal/scale"
)

const (
	width     = 20 * vg.Centimeter
	rowHeight = 1.1 * vg.Centimeter
	frame     = 3 * vg.Centimeter
	barHeight = 0.32 // of a row
)

// Colours that differ for the colour-blind too: the pale one is two processors.
var (
	oursColor  = color.RGBA{0x00, 0x6d, 0x9c, 0xff}
	peerColor  = color.RGBA{0x8a, 0x8f, 0x98, 0xff}
	floorColor = color.RGBA{0xd0, 0x8b, 0x1d, 0xff}
	lineColors = []color.Color{oursColor, color.RGBA{0xc4, 0x4e, 0x52, 0xff}, floorColor, color.RGBA{0x55, 0x7a, 0x46, 0xff}, color.RGBA{0x81, 0x72, 0xb2, 0xff}, peerColor}
	paleBy     = 0.5
)

// WriteCase draws a case to an SVG file: a bar per implementation and mode, on a
// logarithmic axis.
func WriteCase(path string, c CaseResult) error {
	p := newPlot(c.Title)
	p.X.Label.Text = "ns per call, logarithmic (pale: two processors)"
	p.X.Scale = plot.LogScale{}
	p.X.Tick.Marker = powers{}
	b := newBars(c)
	p.Add(b)
	p.NominalY(b.names...)
	p.Y.LineStyle.Width, p.Y.Tick.Length, p.Y.Padding = 0, 0, vg.Points(30)
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = b.DataRange()
	return save(path, p, frame+rowHeight*vg.Length(len(b.rows)))
}

// WriteChart draws a chart to an SVG file: a line per curve, on logarithmic axes.
func WriteChart(path string, c scale.Chart) error {
	p := newPlot(c.Title)
	p.X.Label.Text, p.Y.Label.Text = c.Axis, "ns per call"
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = powers{}, powers{}
	p.Legend.Top, p.Legend.Left, p.Legend.XOffs = true, true, vg.Points(6)
	p.Legend.Padding = vg.Points(2)
	p.Add(plotter.NewGrid())
	for i, curve := range c.Curves {
		points := make(plotter.XYs, len(c.Sizes))
		for j, size := range c.Sizes {
			points[j] = plotter.XY{X: float64(size), Y: curve.Nanos[j]}
		}
		line, dots, err := plotter.NewLinePoints(points)
		if err != nil {
			return err
		}
		line.Color, line.Width = lineColors[i%len(lineColors)], vg.Points(1.5)
		if i%2 == 1 {
			line.Dashes = []vg.Length{vg.Points(4), vg.Points(3)} // where two curves are one, both are seen
		}
		dots.Color, dots.Shape = line.Color, draw.CircleGlyph{}
		p.Add(line, dots)
		p.Legend.Add(curve.Name, line, dots)
	}
	p.X.Max *= 1.3 // room for its last number
	p.Y.Min /= 1.5
	legend := 0.08 * float64(len(c.Curves)) // of the height
	p.Y.Max *= math.Pow(p.Y.Max/p.Y.Min, legend/(1-legend))
	return save(path, p, 11*vg.Centimeter)
}

func save(path string, p *plot.Plot, height vg.Length) error {
	p.BackgroundColor = color.White
	p.Title.Padding = vg.Points(8)
	canvas := vgsvg.New(width, height)
	p.Draw(draw.New(canvas))
	var svg bytes.Buffer
	if _, err := canvas.WriteTo(&svg); err != nil {
		return err
	}
	return os.WriteFile(path, bytes.ReplaceAll(svg.Bytes(), []byte("Liberation Sans"), []byte(fonts)), 0o644)
}

// fonts stand in for one that few have; the first has the same widths.
const fonts = "Arial,Liberation Sans,Helvetica,sans-serif"

// newPlot has room for labels that another font than the one reckoned with makes wider.
func newPlot(title string) *plot.Plot {
	plot.DefaultFont.Typeface, plot.DefaultFont.Variant = "Liberation", "Sans"
	p := plot.New()
	p.Title.Text = title
	for _, style := range []*text.Style{
		&p.Title.TextStyle, &p.X.Label.TextStyle, &p.Y.Label.TextStyle,
		&p.X.Tick.Label, &p.Y.Tick.Label, &p.Legend.TextStyle,
	} {
		style.Font.Variant, style.Font.Size = "Sans", vg.Points(9)
	}
	p.Title.TextStyle.Font.Size = vg.Points(11)
	return p
}

// bars draws rows of two bars from the left edge, for the axis has no zero. The first
// row is on top.
type bars struct {
	names []string // from the bottom
	rows  []bar    // from the bottom
}

type bar struct {
	serial, two float64
	color       color.RGBA
}

func newBars(c CaseResult) *bars {
	b := new(bars)
	for i := len(c.Found) - 1; i >= 0; i-- {
		m := c.Found[i]
		b.names = append(b.names, c.Implementations[i].Name)
		b.rows = append(b.rows, bar{
			serial: m.Time[measure.Serial].Median(),
			two:    m.Time[measure.Two].Median(),
			color:  colorOf(c.Implementations[i].Kind),
		})
	}
	return b
}

func colorOf(kind cases.Kind) color.RGBA {
	switch kind {
	case cases.Ours:
		return oursColor
	case cases.Peer:
		return peerColor
	default:
		return floorColor
	}
}

// DataRange implements plot.DataRanger. It leaves room for the numbers on the right.
func (b *bars) DataRange() (xmin, xmax, ymin, ymax float64) {
	xmin, xmax = 1e9, 1
	for _, r := range b.rows {
		xmin, xmax = min(xmin, r.serial, r.two), max(xmax, r.serial, r.two)
	}
	return xmin / 2, xmax * 2.5, -0.6, float64(len(b.rows)) - 0.4
}

// Plot implements plot.Plotter.
func (b *bars) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	style := text.Style{Color: color.Black, Font: p.X.Tick.Label.Font, YAlign: draw.YCenter, Handler: p.TextHandler}
	for i, r := range b.rows {
		for j, v := range []float64{r.two, r.serial} {
			fill := r.color
			if j == 0 {
				fill = pale(fill)
			}
			bottom := float64(i) + barHeight*float64(j-1)
			left, right, low, high := c.Min.X, x(v), y(bottom), y(bottom+barHeight)
			c.FillPolygon(fill, []vg.Point{{X: left, Y: low}, {X: right, Y: low}, {X: right, Y: high}, {X: left, Y: high}})
			c.FillText(style, vg.Point{X: right + vg.Points(4), Y: (low + high) / 2}, nanos(v))
		}
	}
}

func pale(c color.RGBA) color.RGBA {
	mix := func(v uint8) uint8 { return uint8(float64(v)*(1-paleBy) + 255*paleBy) }
	return color.RGBA{mix(c.R), mix(c.G), mix(c.B), 0xff}
}

// powers are ticks at 1, 2 and 5 times the powers of ten, named at the powers and, where
// the axis is short, at all.
type powers struct{}

func (powers) Ticks(lower, upper float64) []plot.Tick {
	var ticks []plot.Tick
	for power := 1e-3; power <= 1e9; power *= 10 {
		for _, k := range []float64{1, 2, 5} {
			v := k * power
			if v < lower || v > upper {
				continue
			}
			label := ""
			if k == 1 || upper/lower < 300 {
				label = fmt.Sprint(v)
			}
			ticks = append(ticks, plot.Tick{Value: v, Label: label})
		}
	}
	return ticks
}
