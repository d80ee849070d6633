"""Between rod and fluid: kernels, spreading and interpolation, the coupled step."""
